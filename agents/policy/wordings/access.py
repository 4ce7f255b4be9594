"""What providers say in English about credentials, permissions, regions and models that are not there.

One pattern a line (longer ones go on in indented lines), in the language of `agents.policy.fault_words`.
"""

CREDENTIAL = """
{oauth|authentication|login} ~ not {allowed|permitted|supported for this organization}
{invalid|incorrect|wrong|bad|missing|malformed|expired|revoked|unknown|unrecognized|unauthorized|inactive|
    disabled|deleted|no|leaked|compromised|empty|unregistered|illegal|blocked|unsupported|rotated|deactivated|
    not a valid|without a valid|invalid or missing|missing or invalid|invalid or expired|expired or invalid|
    expired or revoked|missing or malformed} ~ {api key|apikey|api keys|api token|access token|token provided|
    token signature|authentication|auth token|credentials|credential|authorization|bearer token|secret key|
    access key|security token|subscription key|x api key|id token|iam token|authentication token|jwt|
    refresh token|oauth token|service account|session token|auth credentials|authorization header|
    authentication credentials|client token|signature for|virtual key|proxy key|personal access token|
    organization id|user key|app id|appid}
{api key|apikey|access token|api token|auth token|oauth token|access key|secret key|bearer token|
    authentication token|security token|credential|credentials|authorization|subscription key|virtual key|
    refresh token|id token|session token|jwt|the token|your token|your key|this key|the key|authentication|
    authorization token|service account|grant|iam token|authorization header} ~ {invalid|incorrect|expired|
    revoked|missing|deactivated|disabled|deleted|wrong|not valid|not found|unauthorized|required|malformed|
    rejected|leaked|compromised|not recognized|blocked|not exist|not match|banned|not be verified|
    not be validated|failed|not provided|denied|suspended|not authorized|not active|locked|rotated|unrecognized|
    inactive|validated|verified|invalidated|unknown|not registered|not set|empty|valid|mismatch}
{no|not|without|missing|didnt|did not} ~ {api key|apikey|auth credentials|credentials|authorization header|
    authentication|api token|access token|bearer token|token provided|cookie auth|auth header|auth token|
    user or org id|authentication credentials}
{authentication|authorization|auth} ~ {fail|failed|failure|fails|required|invalid|error|expired|missing|
    unsuccessful|denied|rejected|incorrect}
{failed|unable|could not|cannot|couldnt|not} ~ {authenticate|authenticated|verify your api key|verify the api key|
    validate api key|validate the token|verify credentials|validate credentials|be authenticated|
    authorize request|validate token|verify token|resolve authentication|parse jwt|refresh token|
    refresh access token}
{unauthenticated|not authenticated|unauthorized|not logged in|please log in|please login|log in again|
    sign in again|login required|reauthenticate|re authenticate|reauthorize|must be authenticated|please sign in|
    login again|must authenticate|please authenticate}
{account|organization|organisation|user|workspace|project|team|tenant} ~ {deactivated|disabled|suspended|banned|
    locked|blocked|terminated|closed|frozen|revoked|inactive|deleted|not active|not found|does not exist|
    restricted}
{suspended|banned|deactivated|disabled|locked|terminated|frozen} {account|organization|user|workspace|key|project}
{signature|token.} ~ {expired|not match|mismatch|invalid|failed|expire|revoked|invalidated|deactivated|
    not yet valid|not valid|is required|missing}
{request|signed} ~ {expired|not current}
{access|permission|authorization|oauth} ~ revoked
{missing|lacks|lack|insufficient|required|requires|require|without|needs|does not have|not have|meet} ~ {scope|
    scopes|scope requirement}
insufficient authentication scopes
{security token|aws access key} * {invalid|expired|does not exist|not match}
api key ~ {not valid|invalid|not found|expired|disabled|revoked|missing|incorrect|required|leaked|
    reported as leaked|suspended}
pass a valid api key
mismatched {api key|organization|project}
{id|jwt|token} ~ verification failed
caller identity
login {fail|failed|expired|required|session}
"""

PERMISSION = """
{not|isnt|arent|never} ~ {authorized|entitled|allowlisted|whitelisted|granted|eligible|authorised|licensed}
{not|isnt|arent|never} ~ {allowed|permitted} {to|for|in|by|on|access|from|with}
{do not|dont|does not|doesnt|without|lacks|lack|insufficient|no|not have|missing|unauthorized|need|needs|havent|
    must have|requires|require} ~ {permission|permissions|access to|access for|privilege|privileges|entitlement|
    entitlements|rights to|authorization to perform|access rights|authority to|right to use|model access}
{permission|access} ~ {denied|forbidden|restricted|required|refused|blocked|disabled|not granted|disallowed|
    not allowed|rejected|not enabled|prohibited|limited to}
access ~ {denied|forbidden|restricted|not enabled|disabled|not permitted|blocked}
{forbidden|access denied|accessdenied|permission denied|operation not allowed|not accessible}
{not|isnt|never} ~ {enabled|activated|available|active|turned on|open|opened|provisioned|supported|subscribed|
    included|offered|accessible|unlocked} ~ {account|organization|project|plan|subscription|workspace|tier|region|
    country|location|team|user|key|territory|tenant|package|users|api key|group|client|area|resource group|
    or activated}
{model|service|feature|api|endpoint|this} ~ {not open|not activated|not enabled|not yet activated|disabled for|
    gated|not subscribed|not purchased|unpurchased|restricted to|only available to|only available for|
    available only|reserved for|exclusive|not been enabled|not been activated|not been used|limited to|blocked by|
    denied by}
{activate|enable|request access|apply for|accept|agree to|subscribe to} ~ {model|service|api|feature|access|terms|
    license|agreement|inference|preview|gated|eula|models}
has not been used in project
{gated|private} {repo|model|repository|endpoint|preview|beta}
{requires|require|need|needs|must} ~ {approval|allowlist|allowlisting|verified organization|be verified|
    organization verification|verification|early access|beta access|to be verified|enterprise|agree to|real name|
    kyc|identity}
{organization|account|identity} ~ {verified|verification|verify}
{must be|not} verified
{ip|network|host|vpc|source ip|client|origin|referer|firewall|private endpoint|virtual network|cors|domain|
    user agent|egress} ~ {not allowed|not in|blocked|denied|restricted|forbidden|whitelist|allowlist|
    not permitted|disabled|not authorized|not whitelisted|not on}
public access is disabled
public network access
{available only|only available|restricted to|limited to|only for|reserved for|allowed only|only allowed|
    exclusive to|only accessible|only works|only be accessed} ~ {model list|cli|clients|coding agents|ip|
    ip addresses|coding tools|claude code|region|client|agent clients|official client|origins|partners|
    subscribers|enterprise|first party|interactive|applications|internal|organizations|paid tier|whitelisted}
{only authorized for use|not authorized for use|only be used|can only be used|may only be used|cannot be used}
allowed models
{sorry you have been blocked|you have been blocked|attention required|just a moment|checking your browser|
    verify you are human|captcha|bot detection|bot management|web application firewall|security service|
    enable javascript and cookies|access from your|error 1020|error 1010|error 1015|ray id}
{data policy|guardrail restrictions|privacy settings|data collection|zero data retention|zdr|
    data retention policy|prompt training|account privacy|data privacy|training policy|provider allowlist|
    ignored providers|all providers have been ignored}
{denied|blocked|disallowed|prohibited|restricted|disabled|forbidden|not allowed} {by |due to |per |under |
    through } ~ {policy|administrator|admin|deny|settings|control policy|based policy|preference|rule|permissions|
    configuration|firewall|policies|organization}
service control policy
explicit deny
is not authorized to perform
{contact|ask} ~ {administrator|admin|owner}
{no|not have|without} access to ~ {model|resource|project|workspace|organization|deployment|endpoint|feature|api|
    service}
use case details have not been submitted
fair use
beta {header|feature|access|program|is not|api}
"""

REGION = """
{country|region|territory|location|geography|geographic|jurisdiction} ~ {not supported|unsupported|not available|
    not allowed|restricted|unavailable|blocked|supported|apply|not permitted|prohibited|embargoed|not currently|
    denied|limitation}
{not|isnt|arent} ~ {available|supported|offered|permitted|accessible|allowed|provided|served} {in|from|within|
    to} ~ {country|region|location|area|territory|jurisdiction}
{unsupported|restricted|blocked|embargoed|unavailable} {country|region|location|territory|jurisdiction}
user location is not supported
{from|in} ~ {unsupported|restricted|embargoed|unsupported or restricted} ~ {country|region|location|territory|
    area}
geo {blocked|restricted|restriction|block|location|fenc}
"""

MISSING_MODEL = """
{endpoint|deployment|model|instance|inference endpoint|model server} * {is not running|not currently running|
    is stopped|been stopped|is paused|been paused|been shut down}
{function|deployment|app|application|nim} * not found for account
{unable|failed|cannot|could not} ~ access ~ model
{model|models|deployment|engine|endpoint|publisher model|base model|model id|modelid|model name|adapter|lora|
    inference profile|inference profiles|app|checkpoint|model alias|alias|model group} * {not found|
    does not exist|doesnt exist|not exist|is not supported|is unknown|not available|is unavailable|
    is not available|no longer available|no longer supported|no longer offered|no longer exists|no longer served|
    has been deprecated|been retired|is retired|has been removed|been removed|not recognized|is not recognized|
    is deprecated|not be found|is not valid|is invalid|not served|not been deployed|not deployed|is not a valid|
    is not hosted|not offered|not loaded|is not loaded|discontinued|decommissioned|end of life|shut down|
    is not deployed|not registered|is not configured|not configured|not in the list|is not on|was not found|
    is gone|sunset|not installed|not pulled|is offline|not listed|is not one of|taken offline|does not serve|
    is no longer|not currently available|could not be found|is not known|not known|cannot be found|cant be found|
    never existed|not part of|not provided by|retired}
{unknown|unsupported|nonexistent|non existent|no such|unrecognized|deprecated|retired|undefined|invalid|
    unavailable} {model|deployment|engine|inference profile|publisher model|base model|llm}
{no|bad|wrong|missing|illegal|incorrect|cannot find|could not find|couldnt find|cant find|unable to find|
    failed to find|did not find|unable to locate|could not locate} ~ {model named|model with|model called|
    model found|model by|model matching|models loaded|model loaded|model is loaded|model id|model name|the model|
    deployment|model for|the requested model|model identifier|models match}
{not|isnt|never} ~ valid model
{no|not any|without any} ~ {endpoints|endpoint|channel|channels|deployment|deployments|route|routes|provider|
    providers|instances} ~ {found|for model|for the model|serve|support|with this model|hosts|for this model|
    for the requested|match|that can}
no {available|allowed|healthy|active|eligible|valid} {channel|channels|provider|providers|endpoint|
    endpoints} ~ {for|model|support|to serve|found}
{models|model} ~ not {supported|available|served|offered|hosted|enabled} {by|on|at|in|through|via|under|
    for use} ~ {provider|providers|list|endpoint|channel|deployment|catalog|server|backend|router|gateway|
    platform|api|generatecontent|operation}
{not supported|unsupported|not available|not found|does not exist} {by|on|in|at|via|through|for} ~ {provider|
    model list|completions endpoint|list of models|inference provider|any provider|generatecontent|this gateway|
    catalog}
{not a chat model|only supported in v1|not supported in the v1|on demand throughput|invocation of model id|
    is not a chat}
{deployment|resource} for this {resource|deployment} does not exist
{pull|download|install|deploy|load} {it|the model|this model|a model} ~ {first|before|with|using}
{available|supported|valid|allowed|known} models {are|is|include|list}
end of life
requested entity was not found
"""

FAMILIES = {
    "credential": CREDENTIAL,
    "permission": PERMISSION,
    "region": REGION,
    "missing_model": MISSING_MODEL,
}
