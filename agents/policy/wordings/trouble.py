"""What providers say in English about trouble of their own: capacity, time, faults.

One pattern a line (longer ones go on in indented lines), in the language of `agents.policy.fault_words`.
"""

CAPACITY = """
{worker|workers|server|instance|node|engine|replica} ~ {request limit|queue limit|requests limit}
{queue position|position in queue|position in the queue|place in line|you are in the queue|waiting in queue|
    current requests}
{switch to|try|use} {another|other|a different|different} {model|models} ~ {smoother|now|instead|moment|temporar|
    later}
{overload|overloaded|overloading|over capacity|overcapacity|at capacity|at full capacity|at maximum capacity|
    saturated|oversubscribed|exceeding capacity|maxed out capacity|over loaded}
{high|heavy|unusually high|increased|elevated|exceptionally high|excessive|extremely high|peak|surge|extreme|
    unprecedented|very high|strong|overwhelming|too much} ~ {demand|load|traffic|usage volume|request volume|
    volume|concurrent load|utilization}
{server|servers|service|system|model|engine|upstream|backend|cluster|provider|api|we|endpoint|platform|network|
    inference|all servers|machine|queue|worker|workers|slots|instances|gpu|gpus} ~ {busy|overload|at capacity|
    full|congested|under load|saturated|overwhelmed|heavy load|out of capacity|no capacity|reached capacity|
    under heavy|experiencing heavy|maxed out|swamped|exhausted|pressure}
{busy|overloaded|congested} {server|servers|service|now|right now|at the moment|please|try|currently}
{insufficient|no|not enough|limited|lack of|out of|lacking|exceeded|exceeds|reduced|constrained|unavailable|
    without} ~ {capacity|gpus|gpu|workers|compute resources|slots|replicas|resources available|
    computing resources|compute|instances|slot|worker|computing power|hosts available|resources to|backends|
    machines}
{capacity|slots|replicas|gpus} ~ {exceeded|reached|limited|constrained|full|exhausted|unavailable|insufficient|
    tight|constraints|not available|busy|limit|error|shortage|low}
{model|service} ~ {too busy|busy|hot|overloaded}
{we are|were|currently|is|are} ~ {receiving too many|receiving a high|experiencing high|experiencing heavy|
    experiencing an|experiencing unusually|handling too many|under heavy|experiencing increased|
    experiencing elevated|receiving more|experiencing a surge|seeing}
receiving too many requests
{temporarily|currently|momentarily|service} ~ unavailable
{service|server|model|api|system|endpoint} unavailable
{service|server|model|api|system|endpoint} {is|temporarily|currently|is currently|is temporarily|
    may be temporarily|is not} {unavailable|available at the moment|available right now}
{currently|temporarily|under} ~ maintenance
no {healthy|available|live} {upstream|backend|backends|hosts|server|servers|upstreams|instance|node|worker}
reset reason * overflow
{request queue|queue saturation|queue budget|load shed|shedding load|shed load|circuit breaker|circuit open|
    queue is full|queue full|max queue|queue size|queue timeout|waiting queue|too many pending|
    pending requests exceed|request queue|backpressure|back pressure|max pending}
{too many connections|connection limit|connection pool}
{scaling up|autoscaling|spinning up|warming up|starting up|cold start|booting|scaled to zero|waking up|
    provisioning}
peak {hours|load|time|period|times|demand|traffic}
all {backends|upstreams|servers|workers|nodes|replicas|instances|providers|channels|accounts} ~ {busy|down|
    unavailable|failed|unhealthy|overloaded|cooling|exhausted|offline}
"""

COLD = """
{model|instance|endpoint|server|container|deployment|worker|weights|replica} ~ {loading|not ready|warming up|
    starting|initializing|starting up|being loaded|loaded yet|not loaded yet|is loading|booting|
    ready for inference|still loading|deploying|being deployed|cold|scaling|waking}
{loading|initializing|starting|warming} ~ model
model is not ready
"""

TIMEOUT = """
{timed out|time out|timeout|timedout|deadline exceeded|took too long|taking too long|deadline expired|deadline|
    time limit exceeded|too slow}
{no|did not|didnt|without} ~ {response|respond|answer|reply|receive|first token}
{exceeded|exceeds|over} ~ {timeout|time limit|deadline|response time|processing time|execution time|duration|
    time allowed}
"""

SERVER = """
{internal|unexpected|unknown|system|server|upstream|backend|gateway|engine|inference|service|runtime|bad|network|
    provider|fatal|unhandled|worker|platform|processing|storage|database|remote|proxy} ~ {error|failure|exception|
    fault|issue|problem|failed|crash|crashed|errors|gateway}
{internal server|internal error|internal fault}
server had an error
{something|things} {went|has gone|gone} wrong
{error|exception|failure|failed|problem|fault} ~ {server|upstream|provider|processing|running|request|internal|
    inference|model|backend|engine|generation|our|network|execution|origin|handling|executing|generating|fetching|
    upstream provider}
{provider|upstream|origin|backend|remote server} ~ {error|failed|failure|fail|errored|bad response|
    invalid response|unexpected|5xx|500|502|reset|disconnected|crashed|unreachable}
{crashed|segfault|panic|core dumped|stack trace|traceback|nullpointer|null pointer|nil pointer|oom|cuda error|
    cuda out|assertion failed|unreachable|disconnected|broken pipe|illegal memory|cublas|nccl}
{connection|connect} ~ {refused|reset|closed|failed|aborted|lost|terminated|error|dropped|broken}
{econnreset|econnrefused|etimedout|socket hang up|eof|enotfound|eai again|epipe}
{network|connection|communication|transport|dns} ~ {error|failure|lost|failed|issue|problem|exception|interrupted|
    unstable}
{web server is|web server returned|origin is|host error|invalid ssl certificate|error 52|bad gateway}
{encountered|hit|experienced|faced|ran into} ~ {error|condition|issue|problem|exception|failure|difficulties}
{stream|response|generation} ~ {interrupted|terminated|aborted|closed unexpectedly|cut off|cut short|broken|
    ended unexpectedly|lost|disconnected}
{canceled|cancelled|cancels|cancel|aborted}
"""

PERMANENT = """
{requires|require|needs|need} more ~ memory
{not enough|insufficient|out of} ~ {memory|vram|ram}
{model|weights} ~ too {large|big} {for|to}
{unable|failed|cannot|could not|error} ~ {load|loading|start|initialize|initializing|allocate|open} ~ {model|
    weights|runner|llama runner|backend buffer|gguf|tensor|checkpoint|compute pp buffers}
{unsupported|unknown|invalid} {model architecture|architecture|quantization|gguf|model file|model format|cpu|
    gpu architecture}
{illegal instruction|missing tensor|corrupt model|corrupted model|wrong tensor|no such file|disk full|
    no space left on device|disk quota}
not implemented
"""

CERTIFICATE = """
certificate {verify|verification|has expired|expired|is not trusted|is not yet|signed by unknown|error|hostname|
    required|chain|unknown}
{self signed|self-signed|unable to get local issuer|hostname mismatch|untrusted|invalid|expired|bad} ~ certificate
hostname mismatch
unable to get local issuer
{doesnt|does not|not} match ~ {hostname|certificate|host name|peer certificate|common name}
"""

FAMILIES = {
    "capacity": CAPACITY,
    "cold": COLD,
    "timeout": TIMEOUT,
    "server": SERVER,
    "permanent": PERMANENT,
    "certificate": CERTIFICATE,
}
