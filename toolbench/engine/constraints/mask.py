"""Token masks for a program that runs the model itself: which tokens a constraint allows next.

    mask = Mask(vocabulary, compile_constraint(tools, "grammar", ConstraintOptions()).grammar)
    while not mask.stopped:
        token = sample(logits, mask.allowed())
        mask.consume(token)

Many masks can share one vocabulary. A mask is for one answer and is not thread-safe.
"""

from collections.abc import Callable, Iterator, Sequence

from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from toolbench.engine.errors import PlanError

Tokenize = Callable[[bytes], list[int]]


class _LlguidanceTokens:
    """A vocabulary with the attributes that llguidance requires."""

    def __init__(
        self, tokens: Sequence[bytes], end_token: int, special: Sequence[int], tokenize: Tokenize | None
    ) -> None:
        self.tokens = tokens
        self.eos_token_id = end_token
        self.bos_token_id = None
        self.special_token_ids = list(special)
        special_ids = set(special)
        self._ids_by_bytes = (
            {}
            if tokenize
            else {text: token_id for token_id, text in enumerate(tokens) if text and token_id not in special_ids}
        )
        self._max_token_bytes = max(map(len, self._ids_by_bytes), default=0)
        self._tokenize = tokenize

    def __call__(self, text: bytes | str) -> list[int]:
        data = text.encode() if isinstance(text, str) else text
        return self._tokenize(data) if self._tokenize else list(self._iterate_longest_tokens(data))

    def _iterate_longest_tokens(self, text: bytes) -> Iterator[int]:
        index = 0
        while index < len(text):
            lengths = range(min(self._max_token_bytes, len(text) - index), 0, -1)
            length = next((length for length in lengths if text[index : index + length] in self._ids_by_bytes), 0)
            if not length:
                return
            yield self._ids_by_bytes[text[index : index + length]]
            index += length


class Vocabulary:
    """The tokens of a model as bytes; the id of a token is its index.

    Building a vocabulary is slow; share it between masks.

    Args:
        tokens: the bytes of each token.
        end: id of the token that ends an answer.
        special: ids of tokens without text, which no grammar allows.
        tokenize: the model's tokenizer, used where the grammar allows only one text. With None, such a text is split
            into the longest tokens.

    Raises:
        PlanError: no token has the id `end`.
    """

    def __init__(
        self, tokens: Sequence[bytes], *, end: int, special: Sequence[int] = (), tokenize: Tokenize | None = None
    ) -> None:
        if not 0 <= end < len(tokens):
            raise PlanError(f"the vocabulary has {len(tokens)} tokens; the one that ends an answer cannot be {end}")
        self.token_count = len(tokens)
        self.end = end
        wrapper = TokenizerWrapper(_LlguidanceTokens(tokens, end, sorted({end, *special}), tokenize))
        self.tokenizer = LLTokenizer(wrapper, n_vocab=len(tokens))


class Mask:
    """The mask of allowed next tokens of one answer.

    Args:
        vocabulary: the model's vocabulary.
        grammar: a grammar in llguidance's variant of Lark, as `compile_constraint` returns it for the constraint
            `grammar`.

    Raises:
        PlanError: llguidance does not accept the grammar.
    """

    def __init__(self, vocabulary: Vocabulary, grammar: str) -> None:
        self._vocabulary = vocabulary
        self._matcher = LLMatcher(vocabulary.tokenizer, LLMatcher.grammar_from_lark(grammar), log_level=0)
        self._ended = False
        self._check_matcher()

    @property
    def stopped(self) -> bool:
        """Whether the answer is complete. Only the ending token may follow, unless it was consumed already."""
        return self._ended or self._matcher.is_stopped()

    def allowed(self) -> bytes:
        """Return the allowed next tokens as one bit for each token of the vocabulary.

        Token 0 is the lowest bit of the first byte; zeros pad the bits to a multiple of four bytes. The bit of the
        ending token is set if the answer may end here. After the ending token was consumed, only this bit is set,
        though `consume` accepts no further token.

        Raises:
            PlanError: llguidance cannot continue with the grammar.
        """
        if self._ended:
            return (1 << self._vocabulary.end).to_bytes((self._vocabulary.token_count + 31) // 32 * 4, "little")
        bits = self._matcher.compute_bitmask()
        self._check_matcher()
        return bits

    def consume(self, token: int) -> None:
        """Add a token to the answer.

        Raises:
            ValueError: the token is not allowed; the mask is unchanged.
            PlanError: llguidance cannot continue with the grammar.
        """
        if self._ended or not self._is_allowed(token):
            raise ValueError(f"token {token} is not allowed here")
        if token == self._vocabulary.end:
            self._ended = True
            return
        self._matcher.consume_token(token)
        self._check_matcher()

    def _is_allowed(self, token: int) -> bool:
        if token == self._vocabulary.end:
            return self._matcher.is_accepting()
        return 0 <= token < self._vocabulary.token_count and self._matcher.validate_tokens([token]) == 1

    def _check_matcher(self) -> None:
        if self._matcher.is_error():
            raise PlanError(f"llguidance cannot use the grammar: {self._matcher.get_error().splitlines()[0]}")
