"""Questions to both engines."""

ORDINARY = """
select i/2 from r order by id
select i % 2, mod(i, 3) from r order by id
select sum(n) from r where id in (1,4)
select i + 1 from r where id = 4
select avg(i) from r
select avg(d) from r
select d / 3 from r where id = 1
select d2 * d2 from r where id = 2
select sum(d2) from r
select id from r order by s desc
select id from r order by s
select id from r order by x desc
select id from r order by x
select max(x), min(x) from r
select count(*) from r where x = x
select count(distinct x) from r
select id from r where x > 1e308
select concat(s, 'x') from r order by id
select s || 'x' from r order by id
select length(s), char_length(s) from r order by id
select upper(s), lower(s) from r order by id
select trim(s) from r where id = 5
select substr('hello', 0, 2), substr('hello', -2)
select round(2.5), round(-2.5), round(d) from r where id = 4
select cast(d as int) from r where id in (1, 2) order by id
select cast(2.9 as int), cast(-2.9 as int), cast('12' as int)
select cast('abc' as int)
select try_cast('abc' as int)
select cast(at as date) from r order by id
select cast(at as string) from r order by id
select cast(x as string) from r order by id
select cast(d as string) from r order by id
select cast(b as string) from r order by id
select date_trunc('month', at) from r order by id
select extract(dow from at) from r where id = 1
select date_part('week', dt) from r where id = 4
select dt + interval 1 month from r where id = 1
select dt - date '2024-01-01' from r where id = 1
select at - timestamp '2024-01-01 00:00:00' from r where id = 1
select date_add(dt, 1) from r where id = 1
select datediff(dt, date '2024-01-01') from r where id = 1
select to_date(s) from r where id = 1
select year(dt) from r order by id
select date_format(at, 'yyyy-MM') from r where id = 1
select at from r where at > '2024-01-31' order by at
select dt from r where dt = '2024-01-31'
select id from r where s = 'b '
select id from r where s like 'B%'
select id from r where s ilike 'b%'
select id from r where s rlike '^b'
select id from r where s in ('b', null) order by id
select id from r where s not in ('b', null)
select count(s), count(*) from r
select s, count(*) from r group by s order by 2, 1
select case when b then 1 end from r order by id
select id from r where not b
select coalesce(s, 'none') from r order by id
select nullif(i, 7) from r order by id
select greatest(i, 1), least(i, 1) from r order by id
select stddev(i), variance(i) from r
select median(i) from r
select percentile_cont(0.5) within group (order by i) from r
select approx_count_distinct(s) from r
select array_agg(id) from r
select first_value(s) over (order by id), last_value(s) over (order by id) from r order by id
select rank() over (order by s) from r order by id
select sum(i) over (order by id rows between 1 preceding and current row) from r where id in (1,2,5)
select row_number() over (order by s) from r order by id
select bool_and(b) from r
select 1/0
select i/0 from r where id = 1
select x/0 from r where id = 1
select 5 / 2, 5.0 / 2
select 1 = 1.0, '1' = 1
select '10' > '9', '10' > 9
select power(2, 3), sqrt(-1)
select split_part('a,b', ',', 2)
select regexp_replace('aab', 'a', 'x')
select position('l' in 'hello'), instr('hello','l')
select left('hello', 2), right('hello', 2), lpad('a', 3, 'x')
select md5('a')
select log(10), ln(10), log(2, 8)
select nvl(s, 'z') from r order by id
select if(b, 1, 2) from r order by id
select collect_list(id) from r
select string_agg(s, ',') from r
select unix_timestamp(at) from r where id = 1
select to_timestamp('2024-01-31 10:00:00')
select current_date is not null
select interval '1 day'
select id from r order by at desc limit 2
select distinct b from r
select sum(x) from r where id in (1,4)
select sum(d) from r
select max(s), min(s) from r
select cast(9223372036854775807 as double) from r limit 1
select hour(at) from r where id = 1
select dayofweek(dt) from r where id = 1
select weekofyear(dt) from r where id = 4
select last_day(dt) from r where id = 1
select months_between(dt, date '2024-01-01') from r where id = 1
select cast(1.005 as decimal(10,2)), round(1.005, 2)
""".strip().splitlines()
"""A hundred ordinary queries, as people type them."""

SHAPES = r"""
select * from r
select id, Mixed, MIXED + 1 from r
select id as Foo from r order by foo
select i/j from r where j <> 0
select id, i from r where i > 0 and i = null
select id from r where id > 1 and null
select id from r where not (s = 'b' or s = null)
select id from r where case when s = 'b' then false else null end
select id from r where i = nullif(1, 1) or id = 2
select id from r where id > 1 and i not in (7, j)
select id from r where i in (7, null, 0) or b
select id from r where num = 12
select id from r where num > 4.5
select id from r where dt > '2000-01-01' and at < '2024-12-31 00:00:00'
select id from r where dt = at
select id from r where d = 2.5
select id from r where e > 0.01 and d2 < 1e3
select id from r where x > 0
select id from r where x = 0
select id from r where x < 0.0
select id from r where x <> x
select id from r where x - x = 0
select id from r where x - x > 1
select id from r where y <= -0.0
select id from r where b is true
select id from r where b is not false
select id from r where s is distinct from 'b'
select id from r where i is not distinct from null
select id from r where i between j and 10
select id from r where s between 'A' and 'b'
select id from r where s like '%\\_%'
select id from r where u ilike '%k%'
select id from r where bin = bin
select id from r where at = timestamp '2024-03-10 07:00:00'
select id from r where (i, j) = (7, 2)
select id from r where exists (select 1 from r q where q.j = r.id)
select id from r where i in (select j from r)
select id from r where i not in (select j from r)
select id from r where j not in (select id from r where id < 3)
select id, (select max(j) from r) from r
select id, (select count(*) from r q where q.i = r.i) from r
select a.id, b.id from r a join r b on a.i = b.i
select a.id, b.id from r a left join r b on a.j = b.id and a.i > null
select a.id, b.id from r a join r b on a.x = b.x
select a.id, b.id from r a full join r b on a.id = b.j
select a.id, b.id from r a cross join r b where a.id < b.id
select id from r a left semi join r b on a.id = b.j
select id from r a left anti join r b on a.id = b.j
select * from (select id, i from r) a join (select id, j from r) b using (id)
select * from (select i, id from r) a join (select id, j from r) b using (id)
select id, a.i, b.j from (select id, i from r) a left join (select id, j from r) b using (id)
select * from r natural join (select id from r) q
with q as (select i, count(*) c from r group by i) select * from q where c > 1
with q(a, b) as (select id, i / 2 from r) select a, b + 1 from q order by b, a
select i + 1 from (select cast(i as bigint) as i from r) q
select s from r union select u from r
select i from r union all select n from r
select d from r union all select e from r
select x from r union all select d from r
select i from r union all select 2.5
select s from r intersect select s from r where id < 3
select s from r except select 'b'
(select id from r order by x desc limit 2) union all (select id from r order by x limit 2)
select i from r union all select j from r order by 1
select x from r where id > 3 union all select y from r order by 1
select x, count(*) from r group by x
select y + 0.0, count(*) from r group by y + 0.0
select i / 2, count(*) from r group by i / 2
select i / 2 as h, count(*) from r group by h having h > 0 order by h
select lower(s) as s, count(*) from r group by s
select i % 2 as k, sum(j), avg(e), min(dt), max(at) from r group by 1 order by 1
select b, s, count(*) from r group by b, s order by b desc, s
select b, count(*) from r group by rollup (b)
select count(distinct s), count(distinct x), count(distinct i / 2) from r
select sum(i), sum(j), sum(g), sum(e), sum(d) from r
select sum(distinct i), avg(distinct e) from r
select sum(d2) from r where id in (1, 4)
select sum(d2 + d2) from r
select sum(n) from r where id in (1, 6)
select sum(m), avg(m), min(m), max(m) from r
select avg(d), avg(e), avg(d2) from r where id <> 2
select avg(x), sum(y) from r where id in (1, 4)
select sum(i) filter (where b), count(*) filter (where i > null), avg(e) filter (where b) from r
select max(b), min(b), bool_or(b) from r
select max(x), min(x), max(u), min(u) from r
select max(bin) from r
select count(*), sum(i), avg(i), avg(d), min(s), max(x), bool_and(b), median(i) from r where id > 100
select median(j), median(n) from r
select count(id, i) from r
select any_value(s) from r where id = 1
select stddev(j) from r
select corr(i, j) from r
select approx_distinct(s) from r
select string_agg(s, ',') from r where id = 1
select array_agg(i order by id) from r
select row_number() over (order by i desc, id) from r
select id, rank() over (partition by b order by x) from r
select id, dense_rank() over (order by x desc) from r
select id, rank() over (order by y) from r
select id, percent_rank() over (order by i), cume_dist() over (order by i), ntile(3) over (order by id) from r
select id, lag(i) over (order by id), lead(s, 2) over (order by id desc) from r
select id, lag(i, 1, 0) over (order by id) from r
select id, first_value(i) over (partition by b order by id), nth_value(i, 2) over (order by id) from r
select id, last_value(i) over (order by id rows between unbounded preceding and unbounded following) from r
select id, first_value(s) ignore nulls over (order by id desc) from r
select id, sum(j) over (order by i) from r
select id, sum(j) over (order by i desc nulls last) from r
select id, avg(e) over (order by id rows between 2 preceding and 1 following) from r
select id, count(*) over (), max(x) over (partition by b) from r
select id, sum(j) over (order by j range between 1 preceding and 1 following) from r
select id, sum(n) over (order by id) from r
select id, sum(j) over w from r window w as (partition by b order by id)
select distinct i from r order by i
select distinct x from r order by x
select distinct i / 2 from r order by 1
select id, x from r order by 2, 1
select id, x from r order by x desc, id desc
select id from r order by -y, id
select id from r order by i nulls last, id
select id from r order by i desc nulls first, id desc
select id from r order by b, dt desc
select id from r order by s || 'x', id
select id from r order by case when b then 1 else 0 end, id
select -i as i from r where id in (1, 2) order by i
select -j as j, id from r where id <> 6 order by j + 1, id
select id from r order by arr, id
select id from r order by id limit 2 offset 1
select id from r limit 0
select id from r limit 3
select 1 from r limit 2
select 'a' as t, null as v from r limit 1
select id from (select id from r limit 100) q
select arr, st, bin from r order by id
select st.a, st.b from r order by id
select arr[1] from r order by id
select st['a'] from r order by id
select id from r where st.a = 1
select id, count(*) over (partition by st) from r
select id, dt, at from far order by at
select id from far where at < '1900-01-01' order by id
select id from far where at > timestamp '9000-01-01 00:00:00'
select id from far where dt <= date '1677-01-01' order by dt
select id, cast(at as date), cast(dt as timestamp) from far order by id
select id, cast(at as string), cast(dt as string) from far order by id
select id, extract(year from at), extract(month from dt) from far order by id
select id, extract(week from dt), extract(doy from at) from far order by id
select id, date_trunc('day', at) from far where id in (4, 5) order by id
select id, at + interval 1 day from far where id <> 2 order by id
select id, dt - interval '1' month from far where id <> 1 order by id
select min(at), max(at), min(dt), max(dt), count(distinct at) from far
select at - lag(at) over (order by id) from far where id in (3, 5) order by id
select date_format(at, 'yyyy-MM-dd HH:mm:ss') from far where id = 5
select a.id, b.id from far a join far b on a.at < b.at and a.k = b.k
select k, count(*) from far group by k order by k desc
select "s" from r
select `s` from r where `id` = 1
select 'a\\nb'
select 'it''s'
select date '2024-02-30'
select timestamp '2024-01-31 10:00'
select timestamp '2024-01-31T10:00:00.5Z'
select cast('2024-01-31T10:00:00+05:30' as timestamp)
select to_date('2024-1-3')
select cast(num as int) + 1 from r order by id
select cast(s as int) from r where id = 1
select try_cast(s as int), try_cast(num as bigint) from r order by id
select try_cast(num as double), try_cast(s as boolean) from r order by id
select cast('  12 ' as int), cast('+5' as int), cast('1e2' as double), cast(' true ' as boolean)
select cast('1.5' as int)
select cast('12.345' as decimal(4,1)), cast('-0.05' as decimal(3,1)), cast(' 7 ' as decimal(3,0))
select cast('Infinity' as double), cast('nan' as double), cast('-inf' as double)
select cast(99999999999 as int)
select cast(1e20 as bigint)
select cast(2.5e0 as int), cast(-2.5e0 as bigint), cast(i as boolean) from r
select cast(x as int) from r where id = 2
select cast(d as decimal(6,2)), cast(d as decimal(4,0)) from r where id <> 4
select cast(e as decimal(38,20)), cast(i as decimal(12,2)) from r where id <> 4
select cast(e as decimal(3,1)) from r
select cast(d2 as double), cast(d as double), cast(n as double), cast(e as bigint) from r order by id
select cast(x as decimal(10,2)) from r where id = 1
select cast(at as bigint) from r
select cast(i as timestamp) from r where id = 1
select cast(b as int), cast(b as string), cast(n as string), cast(g as string) from r order by id
select cast(i as float) from r
select cast(s as varchar(1)) from r
select 9223372036854775807 + 1
select 2147483647 + 1, 2147483648 + 1
select -9223372036854775808, 9223372036854775808, 12345678901234567890123456789012345678
select 99999999999999999999 * 99999999999999999999
select 1.0 / 3, 1 / 3.0, 10 / 4, 1e0 / 3, 2.50 * 1.1, 0.1 + 0.2, 1.5 - 2
select 7 % 3, -7 % 3, 7 % -3, 7.5 % 2, -7.5e0 % 2
select 5 % 0
select 1.0 / 0
select 1e0 / 0
select e / 0 from r
select n * 2 from r where id = 1
select n * 2 from r where id > 3
select i * i from r where id = 1
select i * i from r where id = 4
select -i from r where id = 7
select abs(i) from r where id = 7
select interval 1 month + interval 2 day
select values_of(1)
values (1, 'a'), (2, null)
select unnest(arr) from r
select now() is not null, random() < 2
select struct(1, 'a')
select [1, 2]
select map {'a': 1}
""".strip().splitlines()
"""Clauses, relations and types: one query each."""

EXPRESSIONS = r"""
i + j
g + g
i - n
m * j
d + e
d - i
d * e
e * 3
d2 * 2
d2 * e
d2 + d
d / e
e / 3
e / j
d / j
i / e
d2 / 7
e / 0.3
m / j
i / 2.0
x / 2
y * x
x - x
y + i
y - e
d * 1e0
y / m
m % j
d % 3
e % 0.7
y % 2
-d
-x
-y
+i
(i + 1) * 2
i > j
i = g
n > d
e = 1.25
e >= y
num = i
num < 5
num > 4.5
dt < at
s < u
b = true
b and i > 0
b or null
not b
i is null
x is not null
b is null
x = x
x > 1e308
y = 0
y >= -0.0
i between -10 and 7
i not between 0 and 10
i in (7, 0)
i not in (7, null)
i in (null)
upper(s) in ('b', left(s, j))
regexp_replace(rpad(s, 3, u), '[a-c]+', '#') not in ('b', left(s, j), null)
e in (1.25, 3)
s in ('b', 'B', null)
y in (0.0, 2.5)
s like 'b%'
s like '%_'
u ilike 'ABC%'
s not like 'B'
case when i > 0 then 'p' when i < 0 then 'n' end
case i when 7 then 1 when 0 then 2.5 else 3 end
case when b then i else n end
case when b then d else j end
case when b then x else e end
case when b then s else null end
case when b then dt else at end
coalesce(i, j, 0)
coalesce(e, i)
coalesce(x, 1)
coalesce(null, s, 'z')
coalesce(d, e, d2)
nullif(i, 7)
nullif(e, 1.25)
nullif(x, 0)
nullif(s, '')
greatest(i, j)
greatest(x, y)
greatest(x, 0e0)
least(0e0, y, x)
least(x, y, 1)
least(d, e)
greatest(s, u)
greatest(dt, date '2000-01-01')
nvl(j, 0)
ifnull(s, 'none')
concat(s, '-', u)
concat(i, s)
concat(e, '|', d, '|', b, '|', dt, '|', at)
s || i
s || null
concat_ws('-', s, u, 'x')
concat_ws('-', s, i)
length(u)
char_length(s)
octet_length(u)
upper(u)
lower(u)
trim(u)
ltrim(u)
rtrim(u)
btrim(u)
trim(both 'a' from u)
trim(leading 'a' from u)
trim(trailing 'C' from u)
substr(u, 2)
substr(u, 2, 2)
substr(u, 0)
substr(u, -2)
substr(u, -2, 1)
substr(u, -10, 9)
substr(u, 2, -1)
substr(u, j, 2)
substr(u, 2, j)
substring(u from 2 for 3)
left(u, 2)
left(u, -1)
right(u, 2)
right(u, j)
lpad(u, 4, '*')
rpad(u, 8, 'xy')
lpad(s, 3)
lpad(u, -1, 'x')
lpad(u, 6, '')
repeat(s, 2)
repeat(s, -1)
replace(u, 'a', 'zz')
replace(u, '', 'z')
reverse(u)
translate(u, 'abc', 'xy')
split_part(u, 'b', 1)
split_part(u, 'b', -1)
split_part(u, '', 1)
instr(u, 'b')
instr(u, '')
position('C' in u)
ascii(u)
md5(u)
regexp_replace(u, '[a-c]+', '#')
regexp_replace(u, 'a|x', '')
regexp_replace(u, '^a', 'Z')
regexp_replace(u, '(b)', '<$1>')
regexp_replace(u, '.', '-')
regexp_like(u, 'a')
initcap(u)
abs(j)
abs(d)
abs(x)
abs(e - 3)
ceil(y)
floor(y)
ceil(d)
floor(d)
ceil(i)
floor(e)
round(y)
round(d)
round(d, 2)
round(d, 7)
round(e, 1)
round(d2, 3)
round(i)
round(y, 1)
round(d, -1)
sqrt(abs(y))
sqrt(j * j)
ln(y)
ln(j)
log(m)
log10(j)
log2(m)
log10(y)
log(2, 8)
exp(j)
exp(e)
power(j, 2)
sin(y)
isnan(x)
sign(j)
pi()
cast(at as date)
cast(dt as timestamp)
cast(at as string)
cast(dt as string)
cast(e as string)
cast(x as string)
cast(b as string)
cast(i as string)
cast(d as int)
cast(e as bigint)
cast(e as double)
cast(d2 as double)
cast(y as int)
cast(j as double)
cast(m as decimal(20,2))
cast(num as int)
cast(num as decimal(6,1))
cast(num as double)
try_cast(s as int)
try_cast(u as double)
cast(b as int)
cast(j as boolean)
i::bigint
extract(year from at)
extract(quarter from dt)
extract(month from at)
extract(week from dt)
extract(day from at)
extract(dow from dt)
extract(doy from at)
extract(hour from at)
extract(minute from at)
extract(second from at)
extract(epoch from at)
date_part('year', dt)
date_part('dow', at)
date_part('hour', dt)
date_trunc('year', at)
date_trunc('quarter', at)
date_trunc('month', dt)
date_trunc('week', at)
date_trunc('day', at)
date_trunc('hour', at)
date_trunc('minute', at)
date_trunc('second', at)
date_trunc('MONTH', at)
date_trunc('decade', at)
dt + interval 1 month
dt - interval 1 year
dt + interval '3 days'
dt + interval 2 weeks
dt + interval 1 hour
at + interval 1 month
at - interval '1' day
at + interval 90 minutes
at - interval 5 seconds
at + interval '1 month 2 days'
at - timestamp '2000-01-01 00:00:00'
at - at
dt - dt
dt + 1
date_format(at, 'yyyy-MM-dd')
date_format(dt, 'yyyy/MM/dd')
date_format(at, 'HH:mm:ss.SSS')
date_format(at, 'MMM d, yyyy')
date_format(at, 'E dd MMMM yyyy hh a')
date_format(at, '%Y-%m')
to_date('2024-01-31')
to_timestamp('2024-01-31 10:00:00')
to_char(at, 'yyyy')
null
null + 1
true and null
'a' || 'b'
1.50
0.5
1e-3
100000000000
arr
st
st.a
st.a + 1
bin
at at time zone 'UTC'
s = i
b = 1
b = 'true'
dt = '2024-01-31'
at >= '2024-01-01'
at > dt
u > 5
""".strip().splitlines()
"""Expressions over the table's columns; many are asked in one query."""
