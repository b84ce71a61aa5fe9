-- What is still owed on each demand that was not cancelled.
SELECT
  demand.tenant_id,
  demand.demand_id,
  demand.consumer_code AS property_id,
  demand.financial_year,
  sum(demand_detail.tax_amount) AS tax_amount,
  sum(demand_detail.collection_amount) AS collection_amount,
  sum(demand_detail.tax_amount) - sum(demand_detail.collection_amount) AS outstanding
FROM demand
JOIN demand_detail
  ON demand_detail.tenant_id = demand.tenant_id
  AND demand_detail.demand_id = demand.demand_id
WHERE demand.status = 'ACTIVE'
GROUP BY demand.tenant_id, demand.demand_id, demand.consumer_code, demand.financial_year
