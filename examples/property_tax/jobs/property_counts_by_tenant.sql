-- How many properties each town has, and its share of all of them.
SELECT
  tenant_id,
  count(*) AS properties,
  sum(CASE WHEN status = 'ACTIVE' THEN 1 ELSE 0 END) AS active,
  CAST(round(100 * CAST(count(*) AS DECIMAL(18, 0)) / sum(count(*)) OVER (), 2) AS DECIMAL(5, 2)) AS share_percent
FROM property
GROUP BY tenant_id
