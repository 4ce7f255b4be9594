"""What providers say in Korean.

One pattern a line (longer ones go on in indented lines), in the language of `agents.policy.fault_words`.
"""

OVERFLOW = """
{컨텍스트|프롬프트|입력|대화|메시지|토큰|최대 컨텍스트|입력이} ~ {초과|너무 깁니다|너무 길|깁니다|넘었|넘습니다|
    길이를}
"""

MONEY = """
{잔액|크레딧|잔고|결제|요금|충전|지불|선불} ~ {부족|소진|필요|없습니다|실패|해 주세요|미납|하세요|하십시오|연체|
    모두 사용}
{구독|무료 체험|요금제|플랜} ~ {만료|종료|끝}
충전해
"""

RATE = """
{요청이 너무|속도 제한|요청 한도|너무 많은|요청 제한|요청 횟수|동시 요청|호출 한도|요청 빈도|요청률|레이트}
"""

QUOTA = """
{할당량|사용량|사용 한도|한도|쿼터} ~ {초과|도달|소진|넘}
"""

WINDOW = """
{분당|시간당|일일|하루|주간|초당|오늘|시간 한도|매일}
"""

MONTH = """
{월간|이번 달|매월|월별}
"""

LATER = """
{나중에|잠시|다시 시도|초 후|분 후|시간 후|기다려|이후에}
"""

CREDENTIAL = """
{api 키|api키|토큰|인증|키가|자격 증명|액세스 토큰|계정|로그인|서명} ~ {유효하지|만료|잘못|실패|올바르지|필요|
    정지|비활성|차단|잠겼|없습니다|누락|취소|해지}
{잘못된|유효하지 않은|만료된} ~ {api 키|토큰|인증|키|자격}
"""

PERMISSION = """
{권한이|접근이 거부|액세스가 거부|허용되지|권한 없|활성화되지|접근 권한|접근할 수 없|승인되지}
"""

REGION = """
{지역|국가} ~ {지원되지|사용할 수 없|지원하지|제한|제공되지}
"""

MISSING_MODEL = """
{모델|배포} ~ {찾을 수|존재하지|지원되지|지원하지|종료|사용할 수 없}
"""

CAPACITY = """
{과부하|혼잡|사용량이 많|일시적으로 사용|트래픽이|부하가|점검|용량이|바쁩니다|용량 부족|서비스를 사용할 수}
"""

POLICY = """
{정책|콘텐츠 필터|부적절|유해|안전|민감} ~ {위반|차단|콘텐츠|거부|감지|필터|내용}
"""

HISTORY = """
{도구 호출|tool calls|도구 결과|도구 응답|역할} ~ {필요|찾을 수|일치|번갈아|뒤에|응답|대응|없습니다}
"""

FORMAT = """
{매개변수|파라미터|요청 형식|필드|인수|스키마} ~ {잘못|필요|유효하지|누락|지원|올바르지}
"""

TIMEOUT = """
{시간 초과|시간이 초과|타임아웃|응답 시간|응답이 없}
"""

SERVER = """
{서버 오류|내부 오류|서버 내부|오류가 발생|예기치}
"""

PAYLOAD = """
{요청|파일|페이로드|본문} ~ {너무 큽|크기|너무 커}
"""

IMAGE = """
이미지 ~ {너무 큽|초과|처리할 수|유효하지|크기|디코딩}
"""

FAMILIES = {
    "overflow": OVERFLOW,
    "money": MONEY,
    "rate": RATE,
    "quota": QUOTA,
    "window": WINDOW,
    "month": MONTH,
    "later": LATER,
    "credential": CREDENTIAL,
    "permission": PERMISSION,
    "region": REGION,
    "missing_model": MISSING_MODEL,
    "capacity": CAPACITY,
    "policy": POLICY,
    "history": HISTORY,
    "format": FORMAT,
    "timeout": TIMEOUT,
    "server": SERVER,
    "payload": PAYLOAD,
    "image": IMAGE,
}
