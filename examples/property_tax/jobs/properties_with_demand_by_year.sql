-- Properties that were billed for a financial year; a cancelled demand is no bill.
SELECT
  tenant_id,
  financial_year,
  count(DISTINCT consumer_code) AS properties,
  count(*) AS demands
FROM demand
WHERE status = 'ACTIVE'
GROUP BY tenant_id, financial_year
