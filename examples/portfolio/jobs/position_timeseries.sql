-- Each position on each business date, in euros: its value, the change since its date before, and what was realised since then.
SELECT
  portfolio_id,
  security_id,
  date,
  quantity,
  valuation_status,
  market_value,
  coalesce(market_value, 0)
    - coalesce(lag(market_value) OVER (PARTITION BY portfolio_id, security_id ORDER BY date), 0) AS day_change,
  unrealised,
  CAST(
    (realised - coalesce(lag(realised) OVER (PARTITION BY portfolio_id, security_id ORDER BY date), 0)) * fx_rate
    AS DECIMAL(18, 2)
  ) AS realised_on_day
FROM daily_position_snapshots
