# Owns: the work of the nginx row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -u
mkdir www logs
seq 1 20000 > www/numbers.txt
head -c 200000 /dev/zero > www/zero.bin
echo '<html><!--# include virtual="/small.txt" --></html>' > www/index.html
echo small > www/small.txt
[ "$(id -u)" = 0 ] && user='user root;' || user=''
write_conf() {
  cat > nginx.conf <<CONF
$user
worker_processes 2;
daemon off;
pid $PWD/nginx.pid;
error_log $PWD/logs/error.log warn;
events { worker_connections 256; }
http {
  access_log $PWD/logs/access.txt;
  client_body_temp_path $PWD/logs/body; proxy_temp_path $PWD/logs/proxy; fastcgi_temp_path $PWD/logs/f; uwsgi_temp_path $PWD/logs/u; scgi_temp_path $PWD/logs/s;
  types { text/html html; text/plain txt; }
  gzip on; gzip_http_version 1.0; gzip_types text/plain; gzip_min_length 100;
  proxy_cache_path $PWD/logs/cache keys_zone=zone:1m;
  upstream self { server 127.0.0.1:$port; keepalive 8; }
  server {
    listen 127.0.0.1:$port;
    root $PWD/www;
    location / { ssi on; }
    location ~ ^/echo/(.*)\$ { return 200 "echo \$1 \$arg_x\n"; }
    location /proxied/ { proxy_pass http://self/; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_cache zone; proxy_cache_valid 200 1s; }
  }
}
CONF
}
for attempt in 1 2 3 4 5 6 7 8; do
  port=$((20000 + (RANDOM * 7 + $$) % 12000))
  write_conf
  nginx -p "$PWD" -e "$PWD/logs/start.log" -c "$PWD/nginx.conf" &
  master=$!
  for _ in $(seq 60); do
    (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null && kill -0 "$master" 2> /dev/null && [ -s nginx.pid ] && break 2
    kill -0 "$master" 2> /dev/null || break
    sleep 0.05
  done
  kill "$master" 2> /dev/null
  wait "$master"
done
base="http://127.0.0.1:$port"
load() { ab -q -n "$1" -c 24 -k "${@:3}" "$base$2" | grep -E 'Complete requests|Failed requests|Non-2xx|Document Length'; }
load 15000 /small.txt
load 8000 "/echo/abc?x=1"
load 2000 /zero.bin
load 3000 /numbers.txt -H "Accept-Encoding: gzip"
# Requests in flight while the workers are replaced may fail; that all of them end, and what is served afterwards, is compared.
(load 12000 /proxied/small.txt -r > proxied.out) &
client=$!
sleep 0.1
kill -HUP "$master"
wait "$client"
grep Complete proxied.out
get() { exec 3<> "/dev/tcp/127.0.0.1/$port"; printf 'GET %s HTTP/1.0\r\n%s\r\n' "$1" "${2:-}" >&3; sed '1,/^\r$/d' <&3; exec 3>&-; }
get /index.html
get /proxied/echo/x?x=y
get /numbers.txt | sha256sum
get /numbers.txt $'Accept-Encoding: gzip\r\n' | gzip -dc | sha256sum
get /missing | grep -o '404 Not Found' | head -1
kill -QUIT "$master"
wait "$master"
echo "master exit $?"
grep -E 'alert|crit|emerg|signal 6|signal 11|exited on' logs/error.log logs/start.log
echo "nginx done"
