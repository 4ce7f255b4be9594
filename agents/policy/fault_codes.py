"""Machine codes of providers and what they mean: those of one provider, those that mean one thing, weak ones.

Codes are compared as `normal()` writes them: `ThrottlingException`, `THROTTLING_EXCEPTION` and
`throttling-exception` are the same. Tables are searched by part of a code, from top to bottom.
"""

import re
from functools import cache

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_APART = re.compile(r"[^0-9a-z]+")


def normal(code: str) -> str:
    return _APART.sub("_", _HUMP.sub("_", code[:200]).lower()).strip("_")


# The family whose numbers a provider speaks, and by what parts of a name it is known.
FAMILIES = (
    ("zhipu", "zhipu zai z.ai glm bigmodel"),
    ("minimax", "minimax"),
    ("baidu", "baidu qianfan ernie wenxin"),
    ("spark", "spark xunfei iflytek xfyun"),
    ("dashscope", "dashscope qwen aliyun alibaba bailian tongyi"),
    ("tencent", "hunyuan tencent"),
    ("google", "google gemini vertex cloudcode antigravity"),
    ("bedrock", "bedrock aws sagemaker"),
    ("stepfun", "stepfun"),
    ("mistral", "mistral"),
    ("siliconflow", "siliconflow"),
    ("sensenova", "sensenova"),
    ("workers-ai", "cloudflare-workers workers-ai"),
    ("xai", "xai grok"),
    ("anthropic", "anthropic"),
    ("copilot", "copilot"),
    ("openrouter", "openrouter"),
)

# Numbers and names that mean something at one provider only.
BY_PROVIDER: dict[str, dict[str, str]] = {
    "zhipu": {
        **dict.fromkeys(("1000", "1001", "1002", "1003", "1004", "1100", "1110", "1111", "1112", "1121"), "auth"),
        **dict.fromkeys(("1113", "1309", "1314", "1315"), "billing"), "1120": "server_error", "1200": "server_error",
        **dict.fromkeys(("1210", "1213", "1214", "1215"), "format_error"), "1211": "model_not_found",
        "1212": "model_not_found", "1220": "permission", "1221": "model_not_found", "1222": "model_not_found",
        "1230": "server_error", "1231": "rate_limit", "1234": "server_error", "1261": "context_overflow",
        "1300": "content_policy", "1301": "content_policy", "1302": "rate_limit", "1303": "rate_limit",
        "1304": "rate_limit", "1305": "overloaded", "1308": "rate_limit", "1310": "rate_limit", "1311": "permission",
        "1312": "overloaded", "1313": "permission",
    },
    "minimax": {
        "1000": "server_error", "1001": "timeout", "1002": "rate_limit", "1004": "auth", "1008": "billing",
        "1013": "server_error", "1021": "server_error", "1024": "server_error", "1026": "content_policy",
        "1027": "content_policy", "1033": "server_error", "1039": "rate_limit", "1041": "rate_limit",
        "1042": "format_error", "1043": "format_error", "1044": "format_error", "2013": "format_error",
        "2037": "format_error", "2039": "format_error", "2042": "permission", "2045": "rate_limit",
        "2048": "context_overflow", "2049": "auth", "2056": "rate_limit", "2061": "permission", "2062": "rate_limit",
    },
    "baidu": {
        "1": "server_error", "2": "overloaded", "3": "model_not_found", "4": "rate_limit", "6": "permission",
        "13": "auth", "14": "auth", "15": "auth", "17": "rate_limit", "18": "rate_limit", "19": "billing",
        "100": "auth", "110": "auth", "111": "auth", "336000": "server_error", "336001": "format_error",
        "336002": "format_error", "336003": "format_error", "336004": "auth", "336005": "server_error",
        "336006": "invalid_tool_call_history", "336007": "context_overflow", "336100": "overloaded",
        "336101": "format_error", "336102": "format_error", "336103": "context_overflow", "336104": "format_error",
        "336105": "format_error", "336112": "format_error", "336115": "format_error", "336200": "server_error",
        "336303": "content_policy", "336501": "rate_limit", "336502": "rate_limit", "336503": "rate_limit",
        "336504": "rate_limit", "336505": "rate_limit", "337000": "billing",
    },
    "spark": {
        "10000": "server_error", "10005": "auth", "10007": "rate_limit", "10008": "overloaded", "10009":
        "server_error",
        "10010": "overloaded", "10012": "server_error", "10013": "content_policy", "10014": "content_policy",
        "10015": "auth", "10016": "auth", "10019": "content_policy", "10110": "overloaded", "10163": "format_error",
        "10222": "server_error", "10404": "model_not_found", "10907": "context_overflow", "10910": "rate_limit",
        "11200": "auth", "11201": "rate_limit", "11202": "rate_limit", "11203": "rate_limit", "11210": "rate_limit",
        "11211": "rate_limit", "11221": "model_not_found",
    },
    "stepfun": {"451": "content_policy"},
    "siliconflow": {
        "20012": "model_not_found", "20015": "format_error", "30001": "billing", "30003": "model_not_found",
        "50501": "overloaded", "50502": "overloaded", "50505": "overloaded", "50508": "overloaded", "60000":
        "server_error",
    },
    "workers-ai": {
        "3036": "rate_limit", "3040": "overloaded", "3041": "model_not_found", "5004": "format_error", "5005":
        "format_error",
        "5007": "model_not_found", "5018": "permission", "5021": "context_overflow", "3007": "timeout", "3008":
        "timeout",
        "3030": "server_error", "10000": "auth", "5006": "format_error", "3006": "payload_too_large", "3042":
        "overloaded",
    },
    "mistral": {
        "1300": "rate_limit", "3505": "overloaded", "1500": "model_not_found", "3230": "invalid_tool_call_history",
        "3240": "invalid_tool_call_history", "3051": "context_overflow", "3000": "server_error",
    },
    "dashscope": {"insufficient_quota": "rate_limit"},
    "copilot": {"quota_exceeded": "billing"},
}  # fmt: skip

# Means one thing wherever it is seen; hardly a sentence beside it can change it.
STRONG = (
    (
        "content_policy",
        "data_inspection content_policy content_filter responsible_ai sensitive moderation prohibited_content "
        "policy_violation guardrail safety_ unsafe harmful content_blocked content_security risk_control "
        "illegal_content illegal_prompt input_blocked output_blocked operation_denied_text_illegal content_violation "
        "content_moderat cyber_policy recitation",
    ),
    (
        "invalid_tool_call_history",
        "previous_response_not_found encrypted_content thinking_signature missing_tool_result thought_signature "
        "invalid_message_order invalid_request_message_order tool_call_mismatch tool_use_mismatch item_not_found "
        "conversation_not_found invalid_tool_call_id",
    ),
    (
        "context_overflow",
        "context_length context_window exceed_context context_exceeded context_size context_overflow tokens_too_long "
        "characters_too_long context_too_long prompt_too_long input_too_long prompt_tokens_exceeded max_prompt_tokens "
        "input_tokens_exceed max_context token_limit_exceeded input_length too_many_tokens max_input_tokens "
        "model_max_length context_limit",
    ),
    ("single_request", "tokens_limit_reached tokens_limit_exceeded"),
    (
        "image",
        "image_too oversized_image image_parse invalid_image image_decode unsupported_image too_many_images "
        "image_size image_resolution image_content image_file image_format",
    ),
    (
        "payload_too_large",
        "request_too_large payload_too_large entity_too_large body_too_large bad_request_too_large content_too_large "
        "failed_attachment file_too_large string_above_max_length",
    ),
    (
        "billing",
        "insufficient_balance insufficient_credit insufficient_fund insufficient_user_quota insufficient_account "
        "balance_not_enough not_enough_balance quota_not_enough pre_consume_token_quota arrear overdue "
        "payment_required billing_hard_limit billing_not_active billing_disabled billing_limit out_of_credit "
        "credits_exhausted credit_exhausted credits_balance credit_balance no_credit spend_limit spending_limit "
        "spend_cap budget_exceeded budget_limit credits_required credit_limit free_tier_only free_tier_exhausted "
        "free_quota_exhausted trial_ended trial_expired free_trial subscription_expired plan_expired "
        "subscription_inactive set_limit_exceeded prepaid postpaid charge_resource_exhausted account_in_debt "
        "member_expired monthly_quota"
        " monthly_request monthly_usage monthly_token key_limit_exceeded wallet monthly_limit "
        "free_resource_exhausted resource_pack "
        "quota_exhausted_total billing_balance credits_depleted",
    ),
    (
        "permission",
        "unsupported_country region_not unsupported_region location_not_supported service_disabled unpurchased "
        "ip_not_allowed ip_address_blocked model_not_open feature_not_allowed not_authorized_model "
        "access_not_configured organization_must_be_verified model_access_denied api_key_service_blocked "
        "user_location geo_restricted vpc_service security_policy_violated",
    ),
    (
        "auth",
        "invalid_api_key invalid_key api_key_invalid apikey api_key_expired expired_api_key key_expired token_expired "
        "expired_token invalid_token token_invalid token_revoked refresh_token invalid_iam_token invalid_grant "
        "account_deactivated account_suspended organization_disabled organization_deactivated user_deactivated "
        "deactivated_workspace unrecognized_client invalid_client_token invalid_signature signature_does_not_match "
        "signature_failure signature_expire incomplete_signature request_expired missing_authentication auth_failure "
        "authentication_failed access_token_ no_such_api_key missing_api_key account_locked account_disabled "
        "invalid_credentials credentials_ organization_restricted",
    ),
    (
        "malformed_response",
        "tool_use_failed malformed_function_call output_parse_failed json_validate_failed malformed_tool "
        "invalid_response empty_response malformed_model_output unexpected_tool_call",
    ),
    (
        "format_error",
        "array_above_max unsupported_parameter unsupported_value unknown_parameter missing_required_parameter "
        "missing_parameter invalid_function_param invalid_schema invalid_json_schema invalid_tool_schema "
        "integer_above_max integer_below_min decimal_above_max decimal_below_min",
    ),
    ("cold", "model_not_ready model_loading loading"),
    (
        "overloaded",
        "engine_overloaded overloaded_error model_overloaded server_overload no_capacity capacity_exceeded "
        "capacity_exhausted exceeded_capacity model_capacity insufficient_capacity slow_down server_busy "
        "capacity_not_available queue_full",
    ),
)

# Names a reason, but is found on other failures too: the sentence is heard first.
WEAK = (
    ("billing", "insufficient_quota exceeded_current_quota billing"),
    (
        "model_not_found",
        "model_not_found model_not_exist no_such_model invalid_model unknown_model unsupported_model "
        "model_not_supported deployment_not_found deployment_not",
    ),
    ("permission", "model_not_allowed"),
    ("model_not_found", "model_deprecated"),
    ("", "model_error"),
    (
        "model_not_found",
        "model_unavailable invalid_endpoint no_available_channel get_channel_failed model_does_not_exist model_is_not "
        "channel_not_found",
    ),
    (
        "rate_limit",
        "session_quota usage_limit rate_limit ratelimit rate_exceeded too_many_requests throttl limit_requests "
        "limit_burst limit_tokens concurren rpm_ tpm_ qps_ rpm",
    ),
    ("quota", "quota_exceeded"),
    ("rate_limit", "service_quota"),
    ("quota", "account_quota quota resource_exhausted limit_exceeded limit_reached"),
    ("rate_limit", "request_limit requests_limit freq flow_control too_fast"),
    ("overloaded", "overload service_unavailable unavailable capacity server_is_busy busy"),
    ("auth", "authentication unauthenticated unauthorized authorization auth_error invalid_auth credential signature"),
    ("permission", "permission access_denied forbidden not_authorized access_terminated not_allowed denied"),
    ("format_error", "failed_precondition"),
    ("timeout", "deadline_exceeded gateway_timeout timeout timed_out"),
    (
        "server_error",
        "model_stream_error bad_gateway server_error internal api_error service_error upstream engine_error "
        "system_error bad_response connection backend network provider_error",
    ),
    ("", "not_found"),
    (
        "format_error",
        "invalid_request invalid_argument bad_request validation invalid_param invalid_input unprocessable "
        "invalid_type invalid_value unsupported invalid_json json_parse invalid_format parameter invalid_ missing_",
    ),
)


Table = tuple[tuple[str, str], ...]


def family(*names: str) -> str:
    """The family of a provider by any name under which it is known here; empty for one without codes of its own."""
    return next((known for name in names if (known := meaning(name.lower(), FAMILIES))), "")


@cache
def _parts(table: Table) -> tuple[tuple[str, str], ...]:
    return tuple((part, reason) for reason, parts in table for part in parts.split())


def meaning(code: str, table: Table) -> str:
    """Empty when no part of the code is known."""
    return next((reason for part, reason in _parts(table) if part in code), "")
