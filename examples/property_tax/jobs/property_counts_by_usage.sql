-- Properties by what they are used for. A property whose use was never recorded counts under NULL.
SELECT
  tenant_id,
  usage_category,
  count(*) AS properties,
  sum(CASE WHEN status = 'ACTIVE' THEN 1 ELSE 0 END) AS active,
  sum(land_area) AS land_area
FROM property
GROUP BY tenant_id, usage_category
