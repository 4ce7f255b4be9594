"""What providers say in English about form and content: policy, parameters, a model's own broken output.

One pattern a line (longer ones go on in indented lines), in the language of `agents.policy.fault_words`.
"""

POLICY = """
{content|usage|safety|acceptable use|terms|policy|moderation|trust and safety|community|responsible ai|
    use} ~ {policy|policies|guideline|guidelines|filter|filters|filtering|filtered|moderation|system|restriction|
    restrictions|violation|violations} * {violat|blocked|trigger|flagged|reject|refus|detected|against|
    not allowed|denied|stop|prevented|decline|prohibit|breach|caught|failed}
{violat|against|breach|blocked by|triggered|triggering|flagged|rejected by|rejected as a result of|refused by|
    prohibited by|contravenes|breaches|denied by|declined by|filtered by|stopped by|caught by|tripped} * {policy|
    policies|guideline|content filter|content management|safety|moderation|terms of|rules|usage|acceptable use|
    guardrail|filter|classifier}
{content|prompt|input|output|response|request|message|messages|completion|generation|text|
    conversation} ~ {flagged|moderated|filtered|censored}
{content|prompt|input|output|response|request|text|data|messages} {may|might|could|contains|contain|appears to|
    seems to|was deemed|deemed|is deemed|was considered|considered} * {inappropriate|sensitive|unsafe|harmful|
    prohibited|illegal|violent|offensive|explicit|objectionable|disallowed|policy|risk|nsfw}
{inappropriate|sensitive|unsafe|harmful|prohibited|objectionable|disallowed|illegal|abusive|nsfw|
    violating} {content|input|output|prompt|text|material|information|word|words|image|request}
data {inspection|may contain}
content {filter|blocked|moderation|exists risk|violation|risk|was blocked|is blocked|policy violation|security}
{blocked|stopped|prevented|rejected|refused|denied|terminated|declined|halted} ~ {safety|policy|guardrail|
    guardrails|filter|filters|moderation|recitation|copyright|harm category|prohibited content|classifier|
    content filter|content policy}
{safety|moderation|guardrail|guardrails} ~ {block|blocked|triggered|intervened|flag|failed|reject|rejected|violat|
    stopped|tripped|refused}
safety {reasons|concerns|reason|check type|system}
{refuses|refused|declined|declines|refusal} * {policy|safety|request|prompt|harm|content}
refusal
responsible ai
jailbreak
{copyright|recitation|copyrighted}
{limited access|blocked|not allowed|restricted} * {cybersecurity|cyber|biolog|chemical|csam|weapons}
{cyber|biology|bioweapon|cbrn|csam|self harm|hate speech|sexual content|sexually explicit}
new sensitive
high risk
prohibited content
"""

FORMAT = """
{is|are} {not configured|not set|set but}
{requires|needs|require|need} ~ {to be set|to be enabled|to be configured|flag}
please {set|pass|specify} {enable|the flag|reasoning|tool|max|min|stream|a valid}
{invalid|bad|malformed|incorrect|illegal|unsupported|wrong|unknown|unrecognized|unexpected|missing|extra|required|
    extraneous|mandatory|duplicate|conflicting} ~ {parameter|parameters|param|params|argument|arguments|field|
    fields|schema|json|body|request body|format|input schema|properties|property|value|inputs|key|payload|keyword|
    option|type|syntax|request|header|response format|tool choice|chat setting|tool definition|enum}
{parameter|param|field|argument|property|option|key|setting|input schema|temperature|top p|top k|tool choice|
    response format|reasoning effort|parallel tool calls|stream options|stop sequences|logprobs|seed|verbosity|
    thinking|effort|frequency penalty|presence penalty|functions|tools|stream|store|metadata} * {not supported|
    unsupported|is required|are required|not allowed|not permitted|must be|is invalid|not valid|unknown|
    unrecognized|deprecated|cannot be|may not be|should be|not available|out of range|not accepted|is missing|
    only supports|not recognized|incompatible|cannot both|must have|does not support|doesnt support|illegal}
{does not|doesnt|do not|dont|not} support ~ {parameter|temperature|top p|tools|tool use|tool calling|
    function calling|image input|images|vision|tool choice|streaming|response format|json|reasoning|thinking|
    system|developer|stop|logprobs|audio|parallel|structured|seed|effort|with this model|input}
{validation|schema|parse|parsing|syntax|serialization|deserialization|decode|decoding} {error|errors|failed|
    failure|exception}
{failed|unable|could not|cannot|error} ~ {deserialize|parse|decode|validate|unmarshal|convert|parsing|validating|
    decoding|unmarshalling|read the request|read request|understand the request}
{extra inputs|extra fields|additional properties|additionalproperties|unknown field|unrecognized request argument|
    unexpected keyword|unknown name|unknown parameter|unknown variant}
{not permitted|field required|input should be|value error|type error}
{array|list} ~ {too long|above max|too short|too large}
{tools|tool|functions|function} {array|list|definition|definitions|declaration|declarations|schema|name|names|
    parameters|count} * {invalid|too long|too many|must|exceed|match|unique|duplicate|expected|unsupported|
    not supported|missing|should|at most|max}
too many {tools|functions|stop sequences|function declarations|parameters|metadata|cache}
{maximum|max|at most|up to|no more than|more than} ~ {tools|functions|blocks|stop|cache|function declarations|
    metadata}
maximum of * {blocks|tools|functions|stop} * {may be|provided|allowed|supported|found|got}
{json|tool|function|input|output} schema * {invalid|not supported|unsupported|must|missing|required|too|error|
    not valid|violat|draft}
invalid schema for
{expected|got|received} ~ {string|object|array|integer|number|boolean|int|list|dict|type|map}
{must be|should be|is not} ~ {string|object|array|integer|number|boolean|json|list|type|or equal|enum|one of|
    base64|url|utf}
missing {required|key|field|parameter|value|argument|property|tool|messages|contents|model|prompt|param}
{required|mandatory} {parameter|parameters|field|fields|input parameter|property|argument|key|param}
{invalid|wrong|bad|unsupported} ~ {method|endpoint|content type|media type|url|api version|api path|operation|
    encoding|mime type}
api version {not supported|unsupported|invalid|is not}
{params|param|parameter|parameters|argument|request} {error|is illegal|illegal|are illegal|invalid|are invalid|
    incorrect|wrong|is wrong|not valid|failed validation}
{use|try|send|specify|set|provide|pass} ~ {max completion tokens|max tokens} instead
bad request {body|format|syntax|parameter}
{cannot|can not|may not|must not} ~ {specified|used|set|combined|provided|enabled|both be|mixed|sent} {together|
    both|simultaneously|with|when|at the same|for this|alongside|unless|in combination}
{grammar|regex|pattern} * {invalid|not supported|compile|too complex|failed}
"""

BAD_CALL = """
failed to call a function
{tool call|function call|tool calls} {validation failed|was malformed|is malformed|is not valid json|parse error|
    parse failure|parsing failed|parsing error|could not be parsed|generation failed}
{malformed|unparsable|unparseable|truncated} {function|tool} call
{model|it|assistant} {generated|produced|returned|output|emitted|made} ~ {invalid|malformed|unparsable|broken|
    incomplete|bad|unfinished|illegal}
{failed to|could not|unable to|cannot|error} {generate|parse|parsing|decode} ~ {json|tool call|function call|
    call arguments|tool calls|arguments|output of the model|model output|tool arguments}
failed generation
{error|failure|failed|failed to} {parsing|parse|decoding} ~ tool call
empty {response|answer|completion|reply|output|message} from ~ {model|provider|upstream|server|api|llm}
{model|provider|upstream|server} {returned|sent|produced|gave|generated} ~ {empty|content|blank|nothing|answer|
    usable}
{invalid|malformed|unparsable|not json|non json|unexpected|bad|incomplete|truncated} {response|answer|json|
    reply} from ~ {model|provider|upstream|server|api|origin|backend|engine}
"""

FAMILIES = {
    "policy": POLICY,
    "format": FORMAT,
    "bad_call": BAD_CALL,
}
