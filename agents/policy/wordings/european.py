"""What providers say in German, French, Spanish, Portuguese, Italian and Russian; verbs are cut where they change.

One pattern a line (longer ones go on in indented lines), in the language of `agents.policy.fault_words`.
"""

OVERFLOW = """
{kontextlänge|kontextfenster|kontextgröße|kontextlimit}
{eingabe|prompt|anfrage|nachricht|konversation|unterhaltung} ~ {zu lang|überschreitet|übersteigt|überschreitet}
{longueur|fenêtre|taille|limite} ~ contexte
{requête|invite|prompt|entrée|message|conversation|texte} ~ {trop longue|trop long|dépasse|dépasse|dépasse}
{longitud|ventana|límite|tamaño} {máxima de|máximo de|máxima del|máximo del|de|del} contexto
{solicitud|entrada|mensaje|prompt|conversación|texto} ~ {demasiado larga|demasiado largo|excede|supera|excede|
    supera}
{janela|tamanho|comprimento|limite} {máximo de|máxima de|máximo do|de|do} contexto
{entrada|prompt|mensagem|conversa|solicitação|texto} ~ {muito longa|muito longo|longa demais|longo demais|excede|
    ultrapassa|excede}
{finestra|lunghezza|limite} ~ contesto
{prompt|richiesta|input|messaggio|conversazione} ~ {troppo lungo|troppo lunga|supera}
{длина|длину|окно|окна|размер|лимит} ~ контекст
{запрос|промпт|сообщение|диалог|ввод} ~ {слишком длин|превыша}
"""

MONEY = """
{guthaben|kontostand|zahlung|abonnement|rechnung|kredit|credits|budget|prepaid} ~ {aufgebraucht|nicht ausreichend|
    erforderlich|abgelaufen|reicht nicht|zu niedrig|unzureichend|fehlgeschlagen|überfällig|erschöpft|leer|
    überschritten|aufladen}
{unzureichendes|nicht genügend|nicht genug|kein|zu wenig|ungenügendes} {guthaben|credits|kredit}
{guthaben aufladen|laden sie ihr guthaben|bitte laden sie|zahlungsmethode}
{solde|crédit|crédits|paiement|abonnement|facture|budget} ~ {insuffisant|insuffisants|épuisé|épuisés|requis|
    expiré|expirée|échoué|impayé|impayée|dépassé|nul|négatif|trop faible}
{recharger|rechargez|approvisionner|solde insuffisant|crédits insuffisants|plus de crédits}
{saldo|crédito|créditos|pago|suscripción|factura|fondos|presupuesto} ~ {insuficiente|insuficientes|agotado|
    agotados|requerido|vencida|vencido|pendiente|caducado|agotó|expirado|bajo|excedido|terminado}
{recarga|recargue|añada créditos|agregue|sin saldo|sin créditos|no tiene saldo|fondos insuficientes|
    saldo insuficiente}
{saldo|crédito|créditos|pagamento|assinatura|fatura|orçamento} ~ {insuficiente|insuficientes|esgotado|esgotados|
    necessário|vencida|expirada|expirou|pendente|excedido|acabou|acabaram}
{recarregue|adicione créditos|sem saldo|sem créditos}
{credito|saldo|pagamento|abbonamento|fattura|budget} ~ {esaurito|insufficiente|richiesto|scaduto|scaduta|superato}
{баланс|средств|средства|счет|счёт|счете|счёте|оплат|кредит|подписк|задолженност|денег|тариф} ~ {недостаточно|
    исчерпан|закончил|требуется|истек|истёк|просрочен|отрицательн|необходим|нет|мало|кончил}
{недостаточно|нет|не хватает} {средств|денег|кредит|баланс|токенов на}
{пополните|пополнить|оплатите|недостаточный баланс|исчерпан баланс}
"""

RATE = """
{ratenlimit|ratenbegrenzung|anfragelimit|anfragerate|zu viele anfragen|zu viele gleichzeitige|zu schnell|
    zu häufig|drosselung|gedrosselt|anfragen pro}
{trop de requêtes|limite de débit|limite de requêtes|trop de demandes|trop rapidement|limite de taux|
    requêtes simultanées|débit limité|requêtes par|trop nombreuses}
{demasiadas solicitudes|demasiadas peticiones|límite de tasa|límite de velocidad|límite de solicitudes|
    límite de frecuencia|solicitudes simultáneas|solicitudes por|límite de peticiones}
{muitas solicitações|muitas requisições|limite de taxa|limite de requisições|limite de solicitações|
    requisições simultâneas|solicitações por|requisições por|limite de velocidade}
{troppe richieste|limite di frequenza|limite di richieste|richieste al}
{слишком много запросов|слишком много одновременных|превышен лимит запросов|лимит запросов|ограничение частоты|
    частота запросов|запросов в минуту|ограничение скорости|слишком часто|частоту запросов|превышена частота}
"""

QUOTA = """
{kontingent|nutzungslimit|quote|tageslimit|nutzungsgrenze|limit} ~ {überschritten|erschöpft|erreicht|aufgebraucht|
    ausgeschöpft}
{quota|limite|plafond|limite d utilisation} ~ {dépassé|dépassée|atteint|atteinte|épuisé}
{cuota|límite|cupo} ~ {excedid|alcanzad|agotad|superad}
{cota|limite} ~ {excedid|atingid|esgotad|alcançad}
{quota|limite} ~ {superat|raggiunt|esaurit}
{лимит|квота|квоту|лимита|квоты} ~ {превыш|исчерпан|достигнут}
{превышен|превышена|исчерпан|достигнут|превышение} ~ {лимит|квота|квоты}
"""

WINDOW = """
{pro minute|pro tag|pro stunde|täglich|tageslimit|wöchentlich|par minute|par jour|par heure|quotidien|
    hebdomadaire|por minuto|por día|por dia|por hora|diario|diária|diário|semanal|al minuto|al giorno|в минуту|
    в день|в час|суточн|дневн|ежедневн|недельн}
"""

MONTH = """
{monatlich|monatslimit|pro monat|mensuel|par mois|mensual|mensal|mensile|por mes|por mês|ежемесячн|в месяц|месячн}
"""

LATER = """
{später|erneut|versuchen sie es|warten sie|plus tard|réessayer|réessayez|veuillez patienter|más tarde|intente|
    inténtelo|intentar de nuevo|vuelva a intentar|tente novamente|mais tarde|aguarde|riprova|più tardi|попробуйте|
    повторите|позже|подождите|через}
"""

CREDENTIAL = """
{api schlüssel|apischlüssel|schlüssel|zugangsdaten|token|authentifizierung|anmeldung|zugriffstoken|konto|
    anmeldedaten} ~ {ungültig|abgelaufen|fehlgeschlagen|falsch|fehlt|widerrufen|gesperrt|deaktiviert|erforderlich|
    nicht gültig|inkorrekt|unbekannt}
{ungültiger|ungültiges|ungültige|falscher|abgelaufener|fehlender} {api|schlüssel|token|zugangs|anmelde|
    authentifizierung}
{clé|clef|jeton|identifiants|authentification|compte|token} ~ {invalide|expiré|expirée|échoué|incorrecte|
    incorrect|révoquée|révoqué|manquante|manquant|suspendu|désactivé|requise|non valide|échouée|bloqué}
{clave|llave|token|credenciales|autenticación|cuenta|api key} ~ {inválida|inválido|no válida|no válido|caducada|
    expirado|expirada|incorrecta|fallida|falló|revocada|suspendida|requerida|no es válida|desactivada|bloqueada|
    no autorizada|fallado|caducado}
{chave|token|credenciais|autenticação|conta|api key} ~ {inválida|inválido|expirada|expirado|incorreta|falhou|
    revogada|suspensa|ausente|necessária|não é válida|desativada|bloqueada|expirou}
{chiave|token|credenziali|autenticazione} ~ {non valida|non valido|scaduta|scaduto|errata|fallita|revocata|
    non valide}
{ключ|токен|учетные данные|учётные данные|аутентификац|авторизац|аккаунт|учетная запись|
    учётная запись} ~ {недейств|неверн|истек|истёк|не найден|отозван|заблокирован|ошибк|не прошл|неправильн|
    просрочен|отключен|некорректн|отсутствует|требуется}
{неверный|недействительный|неправильный|некорректный|просроченный} {api|ключ|токен}
"""

PERMISSION = """
{keine berechtigung|nicht berechtigt|zugriff verweigert|nicht autorisiert für|nicht freigeschaltet|keinen zugriff|
    fehlende berechtigung|nicht aktiviert für|zugriff nicht erlaubt}
{accès refusé|accès interdit|pas autorisé|non autorisé à|pas la permission|permissions insuffisantes|
    n avez pas accès|navez pas accès|pas l autorisation|autorisation insuffisante}
{acceso denegado|no tiene permiso|sin permiso|no autorizado para|permisos insuficientes|no tiene acceso|
    permiso denegado|no está habilitad}
{acesso negado|não tem permissão|sem permissão|permissão negada|permissões insuficientes|não tem acesso|
    não está habilitad}
{accesso negato|non autorizzato|permesso negato}
{доступ запрещен|доступ запрещён|нет доступа|нет прав|недостаточно прав|не разрешен|не имеете доступа|
    отказано в доступе|доступ закрыт}
"""

REGION = """
{region|land|standort} ~ {nicht unterstützt|nicht verfügbar}
{région|pays} ~ {non prise en charge|pas pris en charge|non disponible|pas disponible|non pris}
{región|país|ubicación} ~ {no compatible|no disponible|no está disponible|no admit|no soportad|no está permitid}
{região|país|localização} ~ {não suportad|não disponível|indisponível|não compatível|não está disponível}
{регион|стран} ~ {не поддерж|недоступ}
"""

MISSING_MODEL = """
modell ~ {nicht gefunden|existiert nicht|nicht unterstützt|nicht verfügbar|unbekannt|eingestellt}
modèle ~ {introuvable|n existe pas|nexiste pas|non trouvé|pas pris en charge|inconnu|non pris en charge|retiré|
    indisponible}
modelo ~ {no existe|no encontrado|no se encontró|no compatible|no disponible|no está disponible|não existe|
    não encontrado|não suportado|não foi encontrado|desconocido|no soportado|descontinuado|não está disponível|
    no se encuentra}
modello ~ {non trovato|non esiste|non supportato}
модель ~ {не найден|не существует|не поддерж|недоступ|снята|устарел|неизвестн}
"""

CAPACITY = """
{überlastet|ausgelastet|hohe auslastung|hohe nachfrage|vorübergehend nicht verfügbar|nicht verfügbar dienst|
    dienst nicht verfügbar|wartungsarbeiten|keine kapazität|hoher last|starker nachfrage}
{surchargé|surcharge|forte demande|temporairement indisponible|service indisponible|momentanément indisponible|
    maintenance en cours|capacité insuffisante|demande élevée}
{sobrecargado|sobrecarga|alta demanda|temporalmente no disponible|servicio no disponible|
    no está disponible temporalmente|saturado|mantenimiento|capacidad insuficiente}
{sobrecarregado|sobrecarregada|temporariamente indisponível|serviço indisponível|alta procura|manutenção|
    capacidade insuficiente}
{sovraccarico|temporaneamente non disponibile|servizio non disponibile}
{перегружен|перегрузк|высокая нагрузка|временно недоступ|сервис недоступ|сервер занят|высокой нагрузки|
    технические работы|нет свободных}
"""

POLICY = """
{inhaltsrichtlinie|inhaltsfilter|nutzungsrichtlinie|sicherheitsrichtlinie|unangemessen|gegen unsere richtlinien}
{politique de contenu|filtre de contenu|contenu inapproprié|politique d utilisation|règles de sécurité|
    politique dutilisation|contenu interdit|enfreint}
{política de contenido|filtro de contenido|contenido inapropiado|políticas de uso|política de uso|infringe|
    contenido no permitido}
{política de conteúdo|filtro de conteúdo|conteúdo inadequado|políticas de uso|viola nossas|conteúdo impróprio|
    conteúdo não permitido}
{norme sui contenuti|filtro dei contenuti|contenuto inappropriato}
{политик|фильтр|недопустим|запрещен|запрещён|нарушает|нарушение} ~ {содержан|контент|безопасност|использован|
    правил|политик}
"""

HISTORY = """
{tool aufruf|toolaufruf|werkzeugaufruf|tool ergebnis|werkzeugergebnis|funktionsaufruf} ~ {ohne|fehlt|muss|kein|
    zugehörig}
{appel d outil|appel doutil|résultat d outil|résultat doutil|appels d outils} ~ {sans|manquant|doit|correspond}
{llamada a herramienta|llamada de herramienta|resultado de herramienta|llamadas a herramientas} ~ {sin|falta|debe|
    correspond}
{chamada de ferramenta|resultado de ferramenta|chamadas de ferramenta} ~ {sem|falta|deve|correspond}
{вызов инструмента|результат инструмента|вызова инструмента|вызов функции} ~ {без|отсутств|должен|не найден|
    соответств}
{rollen müssen|les rôles doivent|los roles deben|os papéis devem|роли должны} ~ {abwechsel|alterner|alternar|
    alternarse|чередова}
"""

FORMAT = """
{ungültiger parameter|ungültige anfrage|parameter fehlt|fehlender parameter|nicht unterstützter parameter|
    ungültiger wert|ungültiges format|pflichtfeld}
{paramètre invalide|requête invalide|paramètre manquant|paramètre non|format invalide|champ requis|
    valeur invalide|champ obligatoire}
{parámetro inválido|parámetro no|solicitud no válida|falta el parámetro|campo requerido|formato no válido|
    valor no válido|solicitud inválida|campo obligatorio}
{parâmetro inválido|requisição inválida|solicitação inválida|parâmetro ausente|campo obrigatório|formato inválido|
    valor inválido|parâmetro não}
{parametro non|richiesta non valida|campo obbligatorio}
{неверный параметр|недопустимый параметр|неверный запрос|некорректный запрос|отсутствует параметр|обязательн|
    неверный формат|неверное значение|обязательный параметр|недопустимое значение}
"""

TIMEOUT = """
{zeitüberschreitung|zeitlimit überschritten|délai d attente|délai dattente|délai dépassé|tiempo de espera|
    se agotó el tiempo|tempo limite|tempo esgotado|tempo scaduto|таймаут|тайм аут|время ожидания|превышено время|
    délai d expiration}
"""

SERVER = """
{interner fehler|interner serverfehler|serverfehler|unerwarteter fehler|erreur interne|erreur du serveur|
    erreur serveur|une erreur est survenue|une erreur inattendue|error interno|error del servidor|
    error inesperado|erro interno|erro do servidor|erro inesperado|errore interno|errore del server|
    внутренняя ошибка|ошибка сервера|непредвиденная ошибка|произошла ошибка}
"""

PAYLOAD = """
{anfrage zu groß|anforderung zu groß|datei zu groß|requête trop volumineuse|fichier trop volumineux|
    solicitud demasiado grande|archivo demasiado grande|corpo da requisição muito grande|requisição muito grande|
    solicitação muito grande|arquivo muito grande|richiesta troppo grande|слишком большой запрос|
    запрос слишком большой|размер запроса|файл слишком}
"""

IMAGE = """
{bild|image|imagen|imagem|immagine|изображение} ~ {zu groß|nicht verarbeitet|trop grande|trop volumineuse|
    demasiado grande|muito grande|grande demais|troppo grande|слишком большое|не удалось обработать|no se pudo|
    não foi possível|ungültig|no válida|inválida}
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
