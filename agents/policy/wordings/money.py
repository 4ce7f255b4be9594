"""What providers say in English when money or a total allowance is gone.

One pattern a line (longer ones go on in indented lines), in the language of `agents.policy.fault_words`.
"""

MONEY = """
{insufficient|not enough|no remaining|out of|depleted|low|negative|zero|lack of|exhausted|no} ~ {balance|credit|
    credits|funds|fund|money}
{credit|credits|balance|funds|wallet|allowance|prepaid|money} ~ {low|empty|exhausted|insufficient|depleted|
    used up|run out|ran out|negative|zero|overdue|not enough|expired|consumed|spent|gone|below}
{run|ran|running} out of {credit|credits|funds|balance|money|your credit|your balance|prepaid|api credits}
{exhausted|depleted|used up|used all|consumed|spent} ~ {credit|credits|balance|funds|free trial|free quota|
    free tier|free allowance|allowance|free usage}
can only afford
{doesnt|dont|does not|do not|not|didnt} have {any|enough|sufficient|remaining} ~ {credit|balance|funds|license|
    quota left|money}
{no|not have|dont have|without} {an active|any active|active|a valid|a paid|a current} ~ {subscription|plan|
    membership|license}
{run|ran} out of {available|your} {resources|credits|quota|tokens}
{specified|configured|self imposed|custom} ~ {usage|spend|spending} limit
{requires|require|need|needs} more credits
{payment|subscription|invoice|bill} ~ {required|overdue|past due|unpaid|failed|declined|delinquent|expired|lapsed|
    cancelled|canceled|inactive|not active|invalid|ended|missing|terminated|suspended}
{account|balance|billing|project|organization|workspace} ~ {arrears|overdue|past due|unpaid|delinquent|
    inactive due to billing|negative}
{overdue|outstanding|unpaid|pending} {balance|payment|invoice|bill|bills|amount|invoices|charges}
in arrears
arrearage
good standing
{billing|spend|spending|budget|cost|credit|payment|expense|dollar|hard|monetary} {limit|cap|limits|ceiling|
    threshold|allowance} ~ {reached|exceed|hit|used|exhausted|surpassed|over|met}
{reached|exceeded|hit|exceeds|exceed|over|surpassed|exhausted|above|beyond} ~ {billing|spend|spending|cost|hard|
    credit|monetary|money|dollar|prepaid} {limit|cap|usage|total|threshold|ceiling}
budget ~ {exceeded|exhausted|reached|over|spent|used}
max budget
{exceeded|over|exceeds|hit|reached|above} {budget|the budget|your budget|its budget|max budget|monthly budget|
    team budget|key budget|project budget|spend budget|total budget|user budget|provider budget|configured budget|
    maximum budget}
billing ~ {disabled|not enabled|not active|required|enabled on|inactive|enable|not configured|closed|be enabled|
    not set}
{requires|require|enable|enabling|activate|set up} billing
key limit {exceeded|reached}
{key|token} ~ {credit limit|spend limit|spending limit}
{key|api key} {quota|usage limit|limit} ~ {exceeded|reached|exhausted}
token quota is not enough
{user|token} quota ~ {insufficient|not enough|exhausted|used up|failed|enough}
{pre|pre consume|preconsume} {consume|consumed|token} ~ quota
quota * need quota
{free trial|trial|free plan|free tier|free quota|free credits|free usage|promotional|trial period|
    evaluation period|trial credits} ~ {ended|expired|over|exhausted|used up|depleted|finished|consumed|
    no longer available|exceeded|run out|completed}
{plan|subscription|membership|package|license|coding plan|token plan|resource pack|resource package} ~ {expired|
    ended|lapsed|terminated|run out|used up|exhausted|no longer active|inactive|not active|cancelled|canceled|
    overdue}
{expired|lapsed|inactive|cancelled|no active|no valid} ~ {plan|subscription|membership|package|license}
never purchased
{no|without} ~ {payment method|resource package|paid plan|credit card|active subscription}
{upgrade to a paid|requires a paid|paid plan required|paid subscription|requires a paid plan|
    only available on paid|paid account}
extra usage ~ {exhausted|empty|depleted|disabled|used up|ran out|zero|required to}
draw from your extra usage
{out of|no} extra usage
{suspended|paused|stopped|blocked|disabled|deactivated|locked|frozen|restricted} * {balance|recharge|unpaid|
    overdue|payment|billing|arrears|credits|funds|invoice|nonpayment|non payment}
payment required
set {inference|spending|spend|budget} limit
safe experience mode
prepaid * {exhausted|used|depleted|insufficient|zero|exceeded|empty|run out}
postpaid bill
{bill|bills} overdue
spend {limit|cap}
spending {limit|cap}
"""

ADVICE = """
{add|buy|purchase|top up|recharge|load|deposit|replenish|need|requires|require|get} ~ {credits|credit|funds|
    balance|your account|your balance|your wallet|money}
{recharge|top up|topup|refill}
"""

PLAN_QUOTA = """
{exceeded|exceed|exceeds|over} ~ current quota
check your plan and billing
"""

HOLD = """
{in flight|inflight|pending requests|ongoing requests|concurrent requests|outstanding requests|other requests|
    requests in progress|active requests|running requests}
{held|reserved|reservation|on hold|hold} * {in flight|inflight|pending|other requests|concurrent|running requests|
    open requests}
"""

FAMILIES = {
    "money": MONEY,
    "advice": ADVICE,
    "plan_quota": PLAN_QUOTA,
    "hold": HOLD,
}
