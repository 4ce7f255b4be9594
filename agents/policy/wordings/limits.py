"""What providers say in English about rates, quotas and the windows in which they come back.

One pattern a line (longer ones go on in indented lines), in the language of `agents.policy.fault_words`.
"""

QUOTA = """
quota ~ {exceeded|exhausted|reached|used up|depleted|insufficient|consumed|violation|not enough|be exceeded|over|
    full|hit}
{exceeded|exceed|exceeds|exhausted|insufficient|reached|out of|over|hit|used up|no|run out of|surpassed} ~ {quota|
    quotas|allotment}
resource ~ exhausted
resource exhausted
service quota
{usage|request|message|messages|call|calls|query|token|tokens|prompt|premium|generation|plan} ~ {limit|cap|
    allowance|limits|quota} ~ {reached|exceeded|hit|exhausted|resets|reset|used|exceed|over|used up|surpassed|met}
{reached|exceeded|hit|exceeds|exceed|over|surpassed|used up|maxed out|exhausted} ~ {usage limit|usage cap|
    usage quota|request limit|requests limit|message limit|call limit|requests|messages|calls|queries|token limit|
    tokens per|usage|premium requests|plan limit|rate|limit|limits|allowance|allocation|cap|prompts|
    tokens allowed|number of}
usage limit
"""

WINDOW = """
{per|this|each|every|in a|within a|last|previous|a|one|rolling|current|any|1|60|one|next} {minute|min|second|sec|
    hour|day|24 hours|24 hour|60 seconds|60 s|week|session|24h}
{five|5|1|3|4|6|8|12|24|two|three|four|six|7|seven} {hour|hours|h|hr|hrs|day} ~ {limit|window|usage|cap|quota|
    period|allowance|rolling|allocated}
{minute|hour|week|session|day} ~ {quota|limit|cap|window}
{minutely|hourly|daily|weekly|five hour|5 hour|5h|5 hours|per day|per hour|per minute|per second|per week|rpm|tpm|
    rpd|tpd|qps|qpm|tps|itpm|otpm|ipm|rps}
{rolling|sliding|fixed|time|usage|session|rate limit} ~ {window|period}
{session|today|todays|tomorrow} ~ {quota|limit|allowance|usage|cap}
{given|certain|specified|set|short} {time frame|timeframe|time period|period of time|time window|period|
    amount of time|interval}
{for|until} {today|tomorrow|the day|the hour|the week|midnight}
throughput
"""

MONTH = """
{monthly|calendar month|per month|this month|for the month|current month|billing month|calls month|requests month|
    tokens month|credits month|next month|month allocated|each month|every month|a month}
{total|lifetime|one time|onetime|cumulative} {usage|token|tokens|free|credit|allocated|free usage|api} {quota|
    limit|allowance|cap|allocation|allotment}
"""

RESET = """
{resets|reset|renews|refreshes|refresh|replenish|replenishes|renew|replenished|refilled|refills} {at|in|on|after|
    every|tomorrow|daily|hourly|weekly|tonight|next|midnight|when|soon|automatically|by|within}
{quota|limit|limits|allowance|usage|access} ~ be {refreshed|reset|renewed|replenished|restored|lifted}
regain access
"""

CYCLE = """
{billing|subscription|current|plan} {period|cycle}
"""

RATE = """
rate {limit|limits|limited|limiting|exceeded|quota|is too high|increased|too high|throttl|exceeds}
ratelimit
too many {requests|request|concurrent|calls|api|messages|connections|parallel|queries|attempts|simultaneous|
    pending|active|in flight|outstanding}
{requests|request|calls|queries|tokens|messages} ~ {too fast|too quickly|too frequent|quickly|too often|fast|
    frequent|frequently|in short succession}
{too|sending|request} ~ {frequent|quickly|fast|frequency|too high|often|rate}
{throttl|throttled|throttling}
{slow down|slow your|back off|reduce the frequency|reduce your request|reduce your rate|reduce frequency|
    reduce concurrency|lower your request|lower the rate|pace your|decrease your request|reduce the rate|
    reduce your call|reduce request}
{concurrency|concurrent|parallel|simultaneous} ~ {limit|limits|exceed|quota|reached|cap|too high|requests|calls|
    maximum|usage|number|connections|sessions}
{high|exceed|maximum|max|exceeded|reached} ~ {concurrency|concurrent|parallel|simultaneous}
{maximum|max|allowed|exceeded|permitted} ~ {requests|queries|calls|messages}
{exceeded|maximum number of|allowed number of|rate of|max number of} ~ tokens
{requests|tokens|calls|queries} per {minute|min|second|sec|day|hour|week}
{rpm|tpm|qps|qpm|rpd|tpd}
{limit|limits} {requests|tokens|burst}
burst {rate|limit|protection|traffic|quota}
request limit {reached|exceeded|for|per|of}
requests limit
{temporarily|currently|being|been|are|is} {rate limited|throttled|rate limiting|ratelimited}
429
"""

LATER = """
{try|retry} ~ {later|shortly|soon|again later|again in|again after|in a|again at|after a|again shortly|again soon|
    again momentarily|momentarily|after|in}
{try|retry} ~ again {in|after|later|at|on|shortly|soon|once|tomorrow|when|next}
{wait|waiting} ~ {retry|try|seconds|minutes|before|moment|hours|bit|while|few|retrying|trying|reset|s|min|window|
    time|again|until|and}
{temporary|temporarily|transient|momentarily}
{available again|back in|back at|resume|resumes|will reset|resets|until|retry after|retryafter|retry shortly}
retry in
"""

SHARED = """
{rate limited|ratelimited|throttled|limited|limit|unavailable|limits|rate limit} ~ {upstream|gateway account|
    shared pool|shared|provider side}
{upstream|shared|pooled|pool|community|free tier pool} ~ {limit|rate limit|rate limited|rate limits|limited|quota|
    throttled|too many|exceeded|429|exhausted|capacity|cooling|budget|pool}
{no|all|every} ~ {deployment|deployments|accounts|account|channels|channel|credentials|keys|providers|
    model deployments|api keys|auths|auth}
{cooldown|cooling down|cool down|cooled down}
{client|this|oauth|calling|third party} {application|app|integration|plugin|extension} ~ {limit|limited|rate|
    exceeded|quota|throttled}
{add|use|bring|provide|connect|configure} ~ {own key|own api key|own provider|own keys|byok}
{across all|all users|other users|for all users|shared by|shared across|shared between|all customers|every user|
    globally}
{global|systemwide|system wide|platform wide|service wide|application wide} {rate|limit|quota|throttle|request}
"""

FAMILIES = {
    "quota": QUOTA,
    "window": WINDOW,
    "month": MONTH,
    "reset": RESET,
    "cycle": CYCLE,
    "rate": RATE,
    "later": LATER,
    "shared": SHARED,
}
