-- Owns: the work of the sqlite3 row of the real-programs test.
-- May include: nothing.
-- Called by: runner.py, in an empty directory, without and with the library.
-- Invariants: prints the same on every run; leaves no process behind.
.bail on
create table person(id integer primary key, name text, city text, age integer);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
insert into person select i, 'name' || (i * 7919 % 10007), 'city' || (i % 173), i % 90 from n;
create table purchase(id integer primary key, person integer, amount real, note text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 120000)
insert into purchase select i, i * 31 % 60000 + 1, (i % 1000) / 8.0, printf('note %d about %s', i, char(97 + i % 26)) from n;
create index purchase_person on purchase(person);
create index person_city on person(city, age);
select 'join', count(*), sum(amount) from person join purchase on person.id = person where city = 'city17';
select city, count(*), round(avg(amount), 3) from person join purchase on person.id = person group by city order by 3 desc, 1 limit 5;
select 'window', sum(r) from (select rank() over (partition by city order by age, id) as r from person);
create virtual table document using fts5(title, body);
insert into document select name, group_concat(note, ' ') from person join purchase on person.id = person where person.id % 10 = 0 group by person.id;
select 'fts', count(*) from document where document match 'about AND (q OR z)';
select title, snippet(document, 1, '<', '>', '...', 6) from document where document match 'note NEAR 977' order by rank, title limit 3;
select 'json', count(*), sum(json_array_length(j)) from (select json_group_array(json_object('n', name, 'a', age)) as j from person group by city);
select 'json each', sum(value) from json_each((select json_group_array(age) from person));
begin; update purchase set amount = amount + 1 where id % 3 = 0; savepoint s; delete from purchase where id % 2 = 0; rollback to s; commit;
select 'updated', round(sum(amount), 2) from purchase;
delete from person where id % 7 = 0;
select 'except', count(*) from (select person from purchase except select id from person);
attach 'second.db' as second; create table second.copy as select * from person; vacuum second;
select 'copy', count(*) from second.copy;
select 'hash', length(group_concat(hex(zeroblob(50)))) from person;
pragma integrity_check;
select 'sqlite done';
