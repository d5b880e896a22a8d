-- Owns: the work of the sqlite3 row: inserts, indexes, joins, text building, in memory.
-- May include: nothing.
-- Called by: programs.py.
-- Invariants: no random(), no time: the output is the same on every run.
PRAGMA cache_size = -20000;
BEGIN;
CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, city TEXT, born INTEGER);
CREATE TABLE purchase(id INTEGER PRIMARY KEY, person INTEGER, item TEXT, cents INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO person SELECT i, printf('name-%d-%s', i * 7919 % 20011, hex(i * 31)), printf('city %d', i * 13 % 97), 1930 + i % 80 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO purchase SELECT i, i * 6151 % 20000 + 1, printf('item-%s', hex(i * 17 % 1009)), i * 271 % 100000 FROM n;
CREATE INDEX purchase_person ON purchase(person);
CREATE INDEX person_city ON person(city, born);
COMMIT;
SELECT city, count(*), sum(cents), max(name) FROM person JOIN purchase ON purchase.person = person.id GROUP BY city ORDER BY sum(cents) DESC LIMIT 5;
SELECT item, count(DISTINCT person.city), group_concat(substr(name, 1, 7)) IS NOT NULL FROM purchase JOIN person ON person.id = purchase.person GROUP BY item ORDER BY 2 DESC, 1 LIMIT 5;
UPDATE person SET name = name || '-' || city WHERE born % 3 = 0;
DELETE FROM purchase WHERE cents % 7 = 0;
SELECT count(*), sum(length(name)), sum(length(replace(name, 'name', 'another name'))) FROM person;
SELECT sum(json_array_length(json_extract(j, '$.list'))) FROM (SELECT json_object('name', name, 'list', json_array(id, born, city)) AS j FROM person);
