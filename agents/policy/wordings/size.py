"""What providers say in English about the size of a request.

One pattern a line (longer ones go on in indented lines), in the language of `agents.policy.fault_words`.
"""

SINGLE_REQUEST = """
request too large for * {per|tpm|limit|tier|service tier}
request too large * limit * requested
{input|prompt} or output tokens must be reduced in order to run
{single|one} request * {exceed|larger than|more than|above} * {per minute|tpm|rate limit|limit per|allowance}
request * {larger than|bigger than|more than} * {tokens per minute|tpm|per minute} {limit|allowance|quota|cap|
    budget}
request body too large for * model
{tokens|token limit|token cap|maximum tokens|max tokens} per request
per request {token|tokens|input} {limit|cap|maximum}
request * {can never|will never|cannot ever} * {fit|succeed|pass}
"""

OVERFLOW = """
{inputs|input|prompt|messages} {must have|must be|must contain|should have|can have|may have|cannot have|
    must not have} ~ tokens
{less|fewer} than ~ tokens
maximum context {length|window|size|limit|len}
max {context|model|sequence|seq} {length|len|window|size|tokens}
maximum {model|sequence|prompt|input|allowed prompt|allowed input|supported context|supported input} {length|len|
    tokens|token count|size|token}
maximum number of {input tokens|prompt tokens|tokens allowed|tokens supported|tokens for}
context {length|window|size|limit|budget|capacity} ~ {exceed|overflow|too small|full|exhausted|insufficient}
context {length|window|size|limit|capacity} * {exceed|overflow|too small|surpassed|exhausted|is full|is only|
    not enough|not large enough}
{exceed|exceeding|larger than|longer than|greater than|beyond|above|outgr|overr|overflow|surpass|more than|fit in|
    fit into|fit within|fit inside|over} * context {length|window|size|limit|capacity|budget}
{exceed|surpass|overflow|longer than|larger than|greater than|beyond} * {models|model} {window|context|capacity|
    input limit|token limit|maximum input}
{out of|outside of|outside} * context {window|length|size}
context overflow
context {is|already} {full|exhausted}
{ran|run|running} out of context
{room|space|capacity} ~ in {the |this |its }context
{prompt|input|inputs|message|messages|conversation|request|query|history|text|content|thread|chat|transcript|
    session} ~ too {long|many tokens|big for|large for|lengthy|verbose}
too long for ~ {model|context|window|engine}
{prompt|input|inputs|messages|request|conversation|content|text|query} * {exceed|surpass|greater than|longer than|
    larger than|more than|over|above|beyond|outgr|overr} * {token limit|tokens limit|limit of tokens|token length|
    input length|prompt length|input tokens|sequence length|input limit|model length|model limit|number of tokens|
    input size|token count|tokens allowed|token budget|token maximum|tokens supported|prompt limit|model len|
    token window|max tokens|maximum tokens|tokens maximum|length limit|tokens can handle|context}
{prompt|input|conversation|messages} {length|size|token count|tokens} * {exceed|surpass|longer than|larger than|
    greater than|should be|must be|must not|cannot be|at most|over the|above the|limit is|maximum is}
input token count * exceed
exceed+ ~ {token limit|tokens limit|max tokens limit|prompt token|input token|input length|input size|
    prompt length|prompt size|sequence length|context}
exceed+ model token limit
token limit {exceeded|reached|exceeding|for this model|of the model|was exceeded|has been}
too many {input |prompt |total |context |request }tokens
{reduce|shorten|trim|truncate|decrease|compact|summarize|summarise|cut down|cut|split|condense} ~ {prompt|input|
    messages|conversation|history|context|chat|transcript}
range of input length should be
{max|maximum} input characters
{input|prompt} {characters|chars} * {limit|exceed|max|too}
tokens {in|of|from} ~ {messages|prompt|input|request} * {exceed|more than|over|larger|greater|beyond}
{kv|key value} cache * {too small|is full|exhausted|not enough|capacity}
{input|inputs|prompt|messages} ~ {and|plus} {max new tokens|max tokens|max output tokens|max completion tokens|
    completion|requested output|output} * {must be|must not|should be|exceed|greater|larger|longer|more|over}
{input|inputs|prompt} * tokens {and|plus} * {max new tokens|max tokens}
{tokens|characters} * in ~ {request|prompt|messages|input} {more than|exceed|over|but|while}
requested token count exceed
{start|begin|open} a {new|fresh} {chat|conversation|session|thread} * {long|limit|length|full}
{conversation|chat|thread|session|history} * {reached|exceed|over|hit} * {maximum length|length limit|token limit|
    size limit|maximum size}
{prompt|input|messages|conversation|request|tokens|it} {does not|doesnt|do not|dont|did not|will not|wont|cannot|
    cant|no longer} fit
{decrease|lower} ~ input length
context shift is disabled
{input|prompt} ~ {larger|longer|bigger} than ~ {model|window|batch|physical|context|supported|allowed|maximum}
input is too large to process
{prompt|input|context|conversation} ~ {exceeded|outgrown|overrun} ~ {limit|length|capacity|size|window|budget}
{prompt|input|request|messages} {contains|contain|has|have|with|of|uses|is} * tokens {but|which|while|and the|
    however|only|exceed|more than|over} * {limit|maximum|max|window|context|support|allow|accept}
{limit|maximum|max|window} is ~ tokens
{supports|accepts|handles|handle|support|accept} {only |at most |up to |a maximum of |
    no more than }* {input tokens|tokens of input|prompt tokens|tokens of context|context tokens}
"""

OUTPUT_CAP = """
maximum tokens {you|requested|value|parameter}
maximum tokens ~ requested ~ exceed
max {tokens|output tokens|completion tokens|new tokens} ~ {must be|should be|is too|too|cannot|can not|must not|
    may not|out of|is out|exceed|is greater|is larger|is above|greater|is invalid|has to|needs to|range|at most|
    is limited|is more|larger|above|over|is not in|not in}
max {tokens|output tokens|completion tokens|new tokens} * {valid range|supported range|less than or equal|
    maximum allowed number of output|maximum value|output token limit|above the maximum|maximum of|between}
max {tokens|output tokens|completion tokens|new tokens} for * {must be|cannot exceed|should be|is limited|
    may not exceed}
{invalid|illegal|bad|unsupported|incorrect} ~ {max tokens|max output tokens|max completion tokens|max new tokens|
    maxoutputtokens|maxtokens}
{maxoutputtokens|maxtokens|max gen toks|num predict} * {range|exceed|must be|at most|less than|between|too large|
    supported|greater|maximum|limit}
{maximum|max} ~ {output|completion|generated|generation} tokens {allowed|supported|that|per|exceed|must|should|
    limit|for|is}
supports at most * {completion|output} tokens
range of {max tokens|max output tokens|max completion tokens} {should|must}
output {token|tokens} {limit|cap|maximum} * {exceed|of|for|is}
requested output {tokens|length} * exceed
exceed+ ~ {output limit|output token|completion limit|output cap|completion token|output length}
at most ~ {output|completion} tokens
"""

IMAGE = """
image {dimension|size|file size|resolution|pixel|is too|was too|too|data|file|length} * {exceed|too large|too big|
    pixels|larger|allowed|over|too small|max|limit}
{image|images|picture|photo} * {exceed|too large|too big|over the limit|larger than|more than|too many} * {mb|
    pixel|px|byte|maximum|limit|allowed|size|max|kb|megapixel}
{image|images|picture|pictures|photo|photos} {is|are|was|were|being} ~ too {large|big|heavy|small|many|wide|tall|
    high}
{could not|cannot|cant|couldnt|failed to|unable to|not able to|error while|error|unable} {process|processing|
    decode|decoding|load|loading|read|reading|open|parse|parsing|identify|download|downloading|fetch|
    handle} ~ {image|images|picture|photo}
too many {images|image|pictures|media|pdf pages|attachments|photos|pages}
{invalid|unsupported|corrupt|corrupted|malformed|bad|undecodable|broken|damaged} {picture|base64 image|image|
    images|photo}
image {is |file is |data is |appears |seems |may be |could |cannot |format |format is } ~ {valid|supported|
    corrupt|invalid|damaged|broken|decoded|not be decoded|readable|not be processed}
not a valid image
number of images * {exceed|more|limit|max|greater}
{at most|up to|maximum of|more than|no more than|only} ~ {images|image|pictures|pages}
{at most|no more than|maximum of|more than} * {images|image} {may|are|is|can|per|allowed|in|supported}
{pixels|megapixels} * {exceed|limit|max}
many image requests
{document|pdf|attachment|file|video|audio} ~ {too large|too big|exceed|too many|larger than|too long|over the}
image * {width|height} * {must|exceed|larger|min|max|limit|should|smaller|too}
size of the ~ image
total size of images
image media type
"""

PAYLOAD = """
request {entity|body|payload|size|content|message|data} ~ {too large|exceed|larger|over|too big|above|too long}
{payload|entity|content|body|message|upload} ~ {too large|too big|larger than|exceed|over the limit|
    over the maximum}
request {exceeds|exceeded|exceeding|is larger than|is over} ~ {maximum|max|allowed|size|body|byte|limit}
request ~ too {large|big|heavy}
{exceed|over|larger than|above|bigger than} * {max|maximum|limit} * {mb|bytes|megabytes|mib|kb|body size|
    message size|payload size|request size|upload}
{maximum|max} {request|body|payload|message|upload|content} ~ {size|length|bytes}
string too long * maximum length
{received|sent} message larger than max
client intended to send too large body
larger than * {bytes|mb|megabytes}
request body * limit
"""

FAMILIES = {
    "single_request": SINGLE_REQUEST,
    "overflow": OVERFLOW,
    "output_cap": OUTPUT_CAP,
    "image": IMAGE,
    "payload": PAYLOAD,
}
