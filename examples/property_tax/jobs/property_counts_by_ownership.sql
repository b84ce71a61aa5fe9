-- Properties by kind of owner.
SELECT
  tenant_id,
  ownership_category,
  count(*) AS properties,
  sum(CASE WHEN status = 'ACTIVE' THEN 1 ELSE 0 END) AS active
FROM property
GROUP BY tenant_id, ownership_category
