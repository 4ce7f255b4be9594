"""What providers say in English about a history they cannot accept.

One pattern a line (longer ones go on in indented lines), in the language of `agents.policy.fault_words`.
"""

HISTORY = """
did not find ~ {tool result|tool results|tool use|tool call|toolresult}
duplicate {item|items|call|message id}
{more|multiple|consecutive|several|two} ~ assistant messages
{should|must} alternate
{unexpected|orphan|orphaned|dangling|unmatched|unanswered|missing|duplicate|duplicated|extra|incomplete|
    unresolved|unpaired|stray|mismatched|repeated|multiple|insufficient|unknown|not enough} {tool use|tooluse|
    tool uses|tool call|tool calls|tool result|tool results|toolresult|tool call id|tool call ids|tool message|
    tool messages|tool response|tool responses|tool output|tool outputs|function call|function calls|
    function response|function responses|role|roles|message role|assistant message}
{expected|expecting|requires|require|needs|need|missing|without|without a|lacks|lacks a|lacking} ~ {toolresult|
    tool result|tool results|tool response|tool responses|function response|function responses|tool message|
    tool messages|tool output|tool outputs|function call output|assistant message}
{missing|without|without a|lacks|lacks a|lacking} ~ {tool use|tool call|tool calls|function call|function calls|
    assistant tool calls}
{tool use|tooluse|tool uses|tool call|tool calls|tool result|tool results|toolresult|function call|function calls|
    function response|tool message|tool messages|tool response|tool responses|tool output|tool outputs|
    function call output|call id|tool call id|tool call ids|tool use id|tool use ids|tool role|
    role tool} * {without|must be followed|must follow|must immediately|did not have|does not have|do not have|
    has no|have no|had no|immediately after|immediately before|preceding|preceded|previous message|previous turn|
    unmatched|orphan|dangling|unanswered|not followed|no matching|no corresponding|corresponding|
    should be followed|cannot be empty|must not be empty|is empty|must be unique|should be unique|not unique|
    duplicate|same turn|next message|not answered|unresolved|pending|mismatch|must respond|must come|
    must be preceded|more than once|out of order|never answered|never returned|not responded|must be a response|
    must have a|in the history|in the conversation|in history|not match|not found in|was not found|not present|
    no result|no output|expected}
{tool id|tool ids|tool call id|tool use id|tooluseid|call id|toolcallid|tool call ids|tool use ids} ~ {must|
    not found|is not found|invalid|is invalid|should|required|missing|is missing|length|pattern|unknown|does not|
    duplicate|is not|already|not valid|too long|exceed|does not exist|is unknown|is duplicated|is too}
{invalid|malformed|bad|illegal|unsupported|wrong|incorrect|unrecognized|unknown|empty|missing|duplicate|
    duplicated} ~ {tool call id|tool use id|tooluseid|call id|tool call ids|tool use ids|toolcallid|
    function call id}
no tool {call|use|output|result|calls|outputs|results} {found|with|for|matching|exists}
{expected|unexpected|invalid|wrong|incorrect|illegal} ~ {role|message role|role order|message order|
    order of messages|message sequence|turn order|role sequence|sequence of messages|turn sequence|
    conversation structure|sequence of roles|order of roles|role alternation}
{order|sequence} of ~ {messages|roles|turns|conversation}
{roles|turns|messages|role|user and assistant|user and model} {must|should|need to|have to|do not|dont|
    not} ~ alternat
{alternating|alternate} ~ {user|roles|turns|messages|role}
consecutive {user|assistant|model|tool|system|messages with|turns|roles|messages from}
{two|multiple|several} ~ {in a row|from the same role|with the same role|of the same role}
{first|last|final|latest} {message|turn|content|entry|item|role|messages|conversation message|
    non system message} * {must|should|cannot|has to|needs to|may not|with role|expected|cant|was|is not} * {user|
    assistant|tool|model|role|system|human}
{must|should|has to|needs to|cannot|may not} {start|begin|end|finish} with ~ {user|assistant|tool|human|model|
    system|role}
multiturn requests
assistant {message|messages|turn|content|response|message content} * {prefill|cannot be empty|must not be empty|
    final position|trailing whitespace|must have|must contain|must either|neither content|content or tool calls}
{does not|doesnt|not} support ~ prefill
prefill+ * {not supported|unsupported|not allowed|disabled|assistant}
trailing {assistant|whitespace}
content {cannot|must not|can not} end with * whitespace
ends with an assistant
{content|text|message|messages|parts|content blocks|text content|content block|message content|content field|
    text field} ~ {must|cannot|should|may|can|must not|should not|can not} {be |not be |contain |have |
    not contain } ~ {non empty|nonempty|empty|at least one|non whitespace|blank|null}
{empty|blank} {text|content|message|messages|assistant|parts|content block|user|turn|text content|model|contents|
    string} ~ {allowed|permitted|supported|accepted|found|position|index|messages|history}
{non empty|nonempty} content
have non empty
must include at least one parts field
{contains|contain|has} no {parts|content}
at least one part
thinking {block|blocks|content|signature|or redacted|turn} * {must|cannot|missing|not match|modified|invalid|
    expected|required|passed back|preserved|unexpected|not found|remain|verif|not be}
{expected|missing|invalid|unexpected|bad|corrupt|malformed|start with|expired|unverifiable|
    modified} ~ {thinking block|thinking content|thinking or redacted|redacted thinking|thought signature|
    thoughtsignature|reasoning content|reasoning item|signature in thinking|thinking signature|
    reasoning signature}
thought {signature|signatures} * {missing|invalid|not valid|required|corrupt|expired|must|verif|malformed|
    incorrect|absent}
thoughtsignature
reasoning {content|details|item|items|contents} * {must|missing|required|passed back|cannot|not allowed|invalid|
    unexpected|should|not permitted|not supported|absent|unsupported|unknown|not accepted|rejected|without|
    following|not found|not be|unrecognized|extra|not verif|expired}
{unexpected|unsupported|unknown|extra|unrecognized} ~ reasoning {content|details}
signature {in|of|for|field|could|verification|validation|check|does|did|mismatch|is|failed} * {thinking|reasoning|
    thought}
{encrypted|opaque} {content|reasoning|thinking} * {could not|cannot|failed|invalid|not be|decrypt|expired|
    mismatch|unable|not valid|was not|not issued|belongs to|does not}
{could not|cannot|unable to|failed to|couldnt} {decrypt|verify|validate|parse} * {reasoning|encrypted|thinking|
    signature of|thought|item}
{previous|prior|parent|referenced} {response|interaction|message|turn|item} * {not found|does not exist|expired|
    not stored|no longer|unknown|could not be found|missing|cannot be found|doesnt exist|has been deleted}
{previousresponseid|previous response id} * {invalid|not found|unknown|expired}
{item|items|response} with {id|ids} * {not found|does not exist|not exist|no longer|expired|was not found|
    could not be found}
items are not persisted
{required|its} {following|preceding} item
store ~ set to false
{number|count|amount} of {tool|function|toolresult|tooluse} {results|responses|calls|result|outputs|call|response|
    messages|blocks|response parts|call parts}
function {response|call} {turn|parts|part} * {must|should|comes|come|equal|number|missing|immediately|right after}
function call turn
conversation blocks and tool result blocks
{toolresult|tooluse} * {cannot|must|expected|exceed|number|without|empty|match}
{each|every|all} {tool use|tool call|tool calls|tool result|tooluse|toolresult|function call|tool uses|
    tool message|function calls} * {must|need|should|require}
{invalid|broken|corrupt|corrupted|malformed|inconsistent|illegal} ~ history
{message|conversation|chat|dialog} history * {invalid|not valid|broken|inconsistent|malformed|must|corrupt}
after ~ role {tool|assistant|user|system|model|function}
{after|following|before} ~ {tool|function|assistant} {message|call|result|role|response|turn|messages}
role {user|assistant|tool|system|model|function} ~ {follow|after|before|unexpected|expected|allowed after|
    preceded|followed|a response|come|directly}
system {message|messages|role} must ~ {be|come|appear} ~ {beginning|first|start}
must be a response to a {preceding|previous|preceeding}
{messages|message|input} {parameter is |is |are |parameter }{illegal|out of order|not in order}
{no|without} {matching|corresponding} {tool|function|call|toolresult|tooluse}
{already|previously} been {answered|responded|returned}
"""

FAMILIES = {
    "history": HISTORY,
}
