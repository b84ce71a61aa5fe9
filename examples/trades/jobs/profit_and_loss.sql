-- What is held of each instrument, what was paid for it less what was received, and what is left at the latest price.
SELECT
  trades.symbol,
  sum(CASE WHEN trades.side = 'BUY' THEN trades.quantity ELSE -trades.quantity END) AS position,
  CAST(
    sum(CASE WHEN trades.side = 'BUY' THEN trades.quantity ELSE -trades.quantity END * trades.price)
    AS DECIMAL(20, 2)
  ) AS cost,
  max(prices.price) AS price,
  CAST(
    sum(
      CASE WHEN trades.side = 'BUY' THEN trades.quantity ELSE -trades.quantity END
      * (prices.price - trades.price)
    )
    AS DECIMAL(20, 2)
  ) AS profit
FROM trades
LEFT JOIN prices ON prices.symbol = trades.symbol
GROUP BY trades.symbol
