-- The cohort that everybody asks for: accounts that pay today, with what they use.
SELECT
    organization_id,
    name,
    arr,
    renewal_on,
    workspaces,
    live_sources,
    tracks_30d,
    rows_this_month,
    open_tickets,
    care
FROM account
WHERE is_customer
