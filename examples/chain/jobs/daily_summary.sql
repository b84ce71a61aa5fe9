-- The final blocks of each day.
SELECT
  local_date(block_at) AS day,
  count(*) AS blocks,
  sum(difficulty) AS summed_difficulty,
  min(block_number) AS first_block_number,
  max(block_number) AS last_block_number
FROM cold_blocks
GROUP BY local_date(block_at)
