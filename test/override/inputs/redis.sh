# Owns: the work of the redis row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -u
socket=$PWD/r.sock
redis-server --port 0 --unixsocket "$socket" --dir "$PWD" --save '' --appendonly no --enable-debug-command yes \
  --daemonize no --logfile "$PWD/server.log" --io-threads 2 &
server=$!
cli() { redis-cli -s "$socket" "$@"; }
for _ in $(seq 100); do [ "$(cli ping 2> /dev/null)" = PONG ] && break; sleep 0.05; done
awk 'BEGIN { for (i = 0; i < 40000; i++) {
  printf "SET key:%d %0*d\r\n", i, i % 300 + 1, i
  printf "HSET hash:%d f%d v%d\r\n", i % 500, i, i * 3
  printf "ZADD zset:%d %d m%d\r\n", i % 100, i * 7919 % 10007, i
  printf "LPUSH list:%d %d\r\n", i % 50, i
  printf "SADD set:%d member-%d\r\n", i % 20, i % 3000
  if (i % 5 == 0) printf "APPEND key:%d tail-%d\r\n", i / 2, i
  if (i % 3 == 0) printf "DEL key:%d\r\n", i
} }' | cli --pipe | tail -1
echo "size $(cli dbsize)"
cli debug digest
cli get key:4001 | md5sum
cli zrange zset:7 0 3 withscores | tr '\n' ' '; echo
cli eval 'local t = {} for i = 1, 20000 do t[i] = tostring(i) end return #table.concat(t)' 0
# The benchmark's figures differ from run to run; that each of its tests gave one is compared, and the server's state after it.
redis-benchmark -s "$socket" -n 6000 -c 20 -P 4 -d 300 -q -t set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset \
  | tr '\r' '\n' | grep 'requests per second' | sed 's/: [0-9.]* requests.*//'
cli del mylist myset myhash myzset counter:__rand_int__ key:__rand_int__ element:__rand_int__ > /dev/null
cli bgsave > /dev/null
for _ in $(seq 100); do cli info persistence | grep -q 'rdb_bgsave_in_progress:0' && break; sleep 0.05; done
cli info persistence | grep -o 'rdb_last_bgsave_status:ok'
cli debug reload
cli debug digest
cli config set appendonly yes
for _ in $(seq 100); do cli info persistence | grep -q 'aof_rewrite_in_progress:0' && break; sleep 0.05; done
cli info persistence | grep -o 'aof_last_bgrewrite_status:ok'
cli multi > /dev/null
cli memory purge
cli flushall async
echo "size $(cli dbsize)"
cli shutdown nosave
wait "$server"
echo "server exit $?"
echo "redis done"
