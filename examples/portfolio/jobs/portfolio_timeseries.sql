-- Each portfolio on each business date, in euros. A position without a price counts as nothing, and is counted.
SELECT
  portfolio_id,
  date,
  sum(CASE WHEN quantity <> 0 THEN 1 ELSE 0 END) AS positions,
  sum(CASE WHEN valuation_status = 'UNVALUED' THEN 1 ELSE 0 END) AS unvalued,
  coalesce(sum(market_value), 0) AS market_value,
  sum(day_change) AS day_change,
  coalesce(sum(unrealised), 0) AS unrealised,
  sum(realised_on_day) AS realised_on_day
FROM position_timeseries
GROUP BY portfolio_id, date
