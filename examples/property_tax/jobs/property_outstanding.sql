-- What is still owed for each property, over all its demands that were not cancelled.
SELECT
  demand.tenant_id,
  demand.consumer_code AS property_id,
  count(DISTINCT demand.demand_id) AS demands,
  sum(demand_detail.tax_amount) AS tax_amount,
  sum(demand_detail.collection_amount) AS collection_amount,
  sum(demand_detail.tax_amount) - sum(demand_detail.collection_amount) AS outstanding,
  min(CASE WHEN demand_detail.tax_amount > demand_detail.collection_amount THEN demand.financial_year END) AS unpaid_since
FROM demand
JOIN demand_detail
  ON demand_detail.tenant_id = demand.tenant_id
  AND demand_detail.demand_id = demand.demand_id
WHERE demand.status = 'ACTIVE'
GROUP BY demand.tenant_id, demand.consumer_code
