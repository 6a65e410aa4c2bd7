"""Tables of providers and their rate control, models, presets, profiles, local servers and processes."""

from django.db import models


class Provider(models.Model):
    """A service that serves models. Runs have a copy of its name, so they stay when it is deleted."""

    class Kind(models.TextChoices):
        """Kind of the provider."""

        OPENAI = "openai", "OpenAI-compatible"
        ANTHROPIC = "anthropic", "Anthropic Messages"
        LOCAL = "local", "Local llama.cpp"
        SIMULATED = "simulated", "Simulated"

    class Wire(models.TextChoices):
        """Wire format of the requests and answers."""

        CHAT = "chat", "OpenAI chat completions"
        ANTHROPIC = "anthropic", "Anthropic Messages"
        RESPONSES = "responses", "OpenAI Responses"

    class KeySource(models.TextChoices):
        """Source of the API key."""

        NONE = "none", "No key"
        ENVIRONMENT = "environment", "From the worker's environment"
        STORED = "stored", "Stored, encrypted"

    name = models.CharField(max_length=80, unique=True)
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.OPENAI)
    wire = models.CharField(max_length=16, choices=Wire, default=Wire.CHAT)  # a name in engine/wire_formats/registry.py
    template = models.CharField(max_length=40, blank=True)  # row of providers/data/templates.json
    base_url = models.CharField(max_length=300, blank=True)  # "": the URL of the local server `service`
    api_prefix = models.CharField(max_length=60, blank=True, default="/v1")
    service = models.CharField(max_length=80, blank=True)  # ServiceAddress.name of the local server; "" without one
    key_source = models.CharField(max_length=16, choices=KeySource, default=KeySource.NONE)
    key_env = models.CharField(max_length=80, blank=True)  # name of the environment variable with the key
    key_encrypted = models.BinaryField(null=True, blank=True)
    header_names = models.JSONField(default=list, blank=True)  # names of the headers in headers_encrypted
    headers_encrypted = models.BinaryField(null=True, blank=True)  # JSON object: value by header name
    # query string of every request, such as api-version=…; never a secret
    query = models.CharField(max_length=200, blank=True)
    key_header = models.CharField(max_length=60, blank=True)  # header that sends the key; "": that of the wire format
    proxy_url = models.CharField(max_length=300, blank=True)  # without user name and password
    ca_pem = models.TextField(blank=True)  # certificates of authorities trusted in addition to the default ones
    client_certificate = models.TextField(blank=True)
    network_encrypted = models.BinaryField(null=True, blank=True)  # JSON: proxy_login, client_key
    option_defaults = models.JSONField(default=dict, blank=True)  # parameters that every request has, by name
    connect_seconds = models.FloatField(null=True, blank=True)  # timeout; None: the default of the settings
    read_seconds = models.FloatField(null=True, blank=True)  # timeout; None: the default of the settings
    max_attempts = models.PositiveSmallIntegerField(default=3)
    concurrency = models.PositiveIntegerField(default=8)  # concurrency limit: trials in flight, over all workers
    adaptive = models.BooleanField(default=False)  # the concurrency limit follows the answers, up to `concurrency`
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True)  # over all workers; None: no limit
    tokens_per_minute = models.PositiveIntegerField(null=True, blank=True)  # over all workers; None: no limit
    budget_per_month = models.FloatField(null=True, blank=True)  # dollars per calendar month (UTC); None: no budget
    paused_reason = models.CharField(max_length=200, blank=True)  # why a secret of it cannot be read; "" otherwise
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ProviderPace(models.Model):
    """State of the rate control of a provider, shared by all workers.

    Attributes:
        concurrency: the present concurrency limit.
        held_until: time before which no request is sent.
        next_request_at: earliest time of the next request under the limit of requests per minute.
        next_token_at: earliest time of the next request under the limit of tokens per minute.
        state: the PaceState of lab/worker/pacing/state.py as JSON; {} before the first report.
    """

    provider = models.OneToOneField("Provider", on_delete=models.CASCADE, primary_key=True, related_name="pace")
    concurrency = models.PositiveIntegerField()
    held_until = models.DateTimeField()
    next_request_at = models.DateTimeField()
    next_token_at = models.DateTimeField()
    state = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"pace of provider {self.provider_id}"


class PacePoint(models.Model):
    """Figures of the rate control of a provider for an interval of about ten seconds.

    Attributes:
        at: the end of the interval.
        seconds: the length of the interval.
        concurrency: the concurrency limit at the end of the interval.
        in_flight: the largest number of requests in flight.
        answers: number of answers, without rejections.
        rejections: number of rejections: answers with status 429, 503 or 529.
        requests_per_minute: the limit at the end of the interval; None without a limit.
    """

    provider = models.ForeignKey("Provider", on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()
    seconds = models.FloatField()
    concurrency = models.PositiveIntegerField()
    in_flight = models.PositiveIntegerField()
    answers = models.PositiveIntegerField()
    rejections = models.PositiveIntegerField()
    requests_per_minute = models.FloatField(null=True)

    class Meta:
        ordering = ["at"]
        indexes = [models.Index(fields=["provider", "at"], name="pace_points")]

    def __str__(self) -> str:
        return f"pace of provider {self.provider_id} at {self.at}"


class Model(models.Model):
    """A model of a provider, under the name that requests send.

    Models of several providers with the same weights have the same `canonical` name; "" if it is not known.
    """

    provider = models.ForeignKey(Provider, on_delete=models.CASCADE, related_name="models")
    name = models.CharField(max_length=200)
    canonical = models.CharField(max_length=200, blank=True)
    tags = models.JSONField(default=list, blank=True)
    workarounds = models.JSONField(default=list, blank=True)  # names of presets that strategy production adds
    retired = models.BooleanField(default=False)
    mixed_upstreams = models.BooleanField(default=False)  # a router chooses among hosts, as with `:nitro` names
    true_rates = models.JSONField(default=dict, blank=True)  # success rates of a simulated model; {} for others
    capabilities = models.JSONField(default=dict, blank=True)
    price = models.JSONField(default=dict, blank=True)  # set by a user, read by evals/prices.py; {}: the list price
    # request parameter for constrained output: response_format or grammar; "" for none
    constraint = models.CharField(max_length=24, blank=True)
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["provider__name", "name"]
        constraints = [models.UniqueConstraint(fields=["provider", "name"], name="one_model_per_provider_and_name")]

    def __str__(self) -> str:
        return self.name


class Preset(models.Model):
    """A named patch of the policy.

    A key that the patch lacks keeps the value of the policy layer below; null or [] clears the value.
    """

    name = models.SlugField(max_length=80, unique=True)
    patch = models.JSONField(default=dict)
    description = models.TextField(blank=True)
    builtin = models.BooleanField(default=False)
    archived_at = models.DateTimeField(null=True, blank=True)  # when it was deleted although a run had used it

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class PriceList(models.Model):
    """The list prices of a provider template that the stored costs of cells follow.

    If the list prices of a new version of Toolbench differ, cells are marked for recomputing and the row is replaced.

    Attributes:
        template: slug of the template.
        prices: `[input, output]` by model name, in US dollars per million tokens.
    """

    template = models.CharField(max_length=40, unique=True)
    prices = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"list prices of {self.template}"


class SamplingProfile(models.Model):
    """Named sampling options.

    Attributes:
        applies_to: case-sensitive glob pattern for the names of models, such as `qwen*`.
        order: position in lists; profiles with the same position are sorted by name.
    """

    name = models.SlugField(max_length=80, unique=True)
    applies_to = models.CharField(max_length=200, default="*")
    options = models.JSONField(default=dict, blank=True)
    tags = models.JSONField(default=list, blank=True)
    builtin = models.BooleanField(default=False)
    order = models.PositiveSmallIntegerField(default=1000)
    archived_at = models.DateTimeField(null=True, blank=True)  # when it was deleted although a run had used it

    class Meta:
        ordering = ["order", "name"]

    def __str__(self) -> str:
        return self.name


class ServiceAddress(models.Model):
    """The address of a local server, written by the process that starts the server.

    Attributes:
        name: the name of the server.
        host: the only host on which the address is valid.
        key: the API key of the server; "" for none.
        model: the model that the server serves; "" for several.
        ready_at: when the server was ready and its address was stored.
    """

    name = models.CharField(max_length=80, unique=True)
    host = models.CharField(max_length=200)
    url = models.CharField(max_length=200)
    key = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=200, blank=True)
    ready_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Process(models.Model):
    """The last heartbeat of a process.

    Only a recent heartbeat shows that a process works: it may still run, but receive no messages.

    Attributes:
        loop_lag_ms: longest event-loop lag since the previous heartbeat of the same worker session; 0 if no session
            sent the heartbeat.
        clock_offset_ms: how far the host's clock was ahead of the database's at the heartbeat; negative if behind.
        seen_at: time of the heartbeat.
    """

    name = models.CharField(max_length=120, unique=True)  # worker@host:pid, scheduler@host:pid
    kind = models.CharField(max_length=20)
    host = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    loop_lag_ms = models.FloatField(default=0)
    clock_offset_ms = models.FloatField(default=0)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class ClaimingWorker(models.Model):
    """A worker whose session claims trials of a provider; several workers share the provider's slots.

    Attributes:
        worker: name of the process, as in `Process.name`.
        seen_at: when the session was last known to claim trials.
    """

    provider = models.ForeignKey(Provider, on_delete=models.CASCADE, related_name="+")
    worker = models.CharField(max_length=120)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "worker"], name="one_row_per_claiming_worker")]

    def __str__(self) -> str:
        return self.worker
