-- Money received per month; money given back counts against the month it was given back in.
SELECT
  tenant_id,
  month,
  count(*) AS payments,
  sum(amount) AS amount
FROM payments
GROUP BY tenant_id, month
