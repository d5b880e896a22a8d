# Owns: the work of the PostgreSQL row of the real-programs test.
# May include: nothing.
# Called by: runner.py, in an empty directory, without and with the library.
# Invariants: prints the same on every run; leaves no process behind.
set -eu -o pipefail
# The server refuses to run as root. The directories were made by whoever started the row.
if [ "$(id -u)" = 0 ] && [ "${1:-}" != again ]; then
  chown -R 65534:65534 . && chmod 755 .
  exec setpriv --reuid=65534 --regid=65534 --clear-groups bash "$0" again
fi
export PATH=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1):$PATH
export PGHOST=$PWD PGDATABASE=postgres PGUSER=test PGDATA=$PWD/data
initdb -D data -U test -A trust --no-sync -E UTF8 --locale=C > initdb.txt 2>&1 || { cat initdb.txt >&2; exit 1; }
cat >> data/postgresql.conf <<CONF
listen_addresses = ''
unix_socket_directories = '$PWD'
fsync = off
max_connections = 30
shared_buffers = 64MB
dynamic_shared_memory_type = posix
min_parallel_table_scan_size = 0
parallel_setup_cost = 0
work_mem = 2MB
CONF
pg_ctl -D data -l server.log -w -s start
trap 'pg_ctl -D data -s -m immediate stop 2> /dev/null || true' EXIT
pgbench -i -s 3 -q 2>&1 | grep -c 'done in'
pgbench -n -c 6 -j 2 -t 400 2> bench.err | grep 'actually processed'
pgbench -n -S -M prepared -c 6 -j 2 -t 2000 2>> bench.err | grep 'actually processed'
pgbench -n -C -S -c 4 -t 30 2>> bench.err | grep 'actually processed'
grep -c . bench.err || true
psql -qAt <<'SQL'
select 'balance', (select sum(abalance) from pgbench_accounts) = (select sum(bbalance) from pgbench_branches), (select count(*) from pgbench_history);
create table t as select i, md5(i::text) as h, i % 997 as g, jsonb_build_object('i', i, 'l', array[i, i + 1]) as j from generate_series(1, 150000) i;
create index on t(h); create index on t using gin (j jsonb_path_ops); analyze t;
select 'group', count(*), sum(c) from (select g, count(*) c from t group by g having count(*) > 100) s;
select 'join', count(*) from t a join t b on a.h = b.h where a.g = b.g;
select 'sort', h from t order by h desc offset 75000 limit 1;
select 'json', count(*) from t where j @> '{"l": [777]}';
select 'window', sum(r) from (select rank() over (partition by g order by h) r from t) s;
select 'text', length(string_agg(h, ',' order by i)) from t;
select 'regexp', count(*) from t where h ~ '^(a|b)[0-9]{3}.*f$';
select 'recursive', max(n) from (with recursive r(n) as (select 1 union all select n + 1 from r where n < 50000) select n from r) s;
do $$ declare s text := ''; begin for k in 1..3000 loop s := s || k::text; end loop; raise notice 'plpgsql %', length(s); end $$;
select 'tsvector', count(*) from t where to_tsvector('english', h || ' running words') @@ to_tsquery('run & word') and i <= 5000;
vacuum full t;
SQL
# Recent dumps open and close with a random word.
pg_dump -t t | grep -v restrict | md5sum
pg_ctl -D data -s -m fast -w stop
trap - EXIT
grep -E 'PANIC|terminated by signal|FATAL' server.log || true
echo "postgresql done"
