-- Billed against collected, per financial year of the bill.
SELECT
  tenant_id,
  financial_year,
  count(*) AS demands,
  sum(tax_amount) AS tax_amount,
  sum(collection_amount) AS collection_amount,
  sum(outstanding) AS outstanding,
  CAST(
    round(100 * CAST(sum(collection_amount) AS DECIMAL(18, 2)) / nullif(CAST(sum(tax_amount) AS DECIMAL(18, 2)), 0), 2)
    AS DECIMAL(9, 2)
  ) AS collected_percent
FROM demand_outstanding
GROUP BY tenant_id, financial_year
