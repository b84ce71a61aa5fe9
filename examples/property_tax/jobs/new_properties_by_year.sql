-- Properties by the financial year they were registered in.
SELECT
  tenant_id,
  financial_year,
  count(*) AS properties
FROM property
GROUP BY tenant_id, financial_year
