"""OpenAI's requests and answers: what a gateway, a replica and a bulk job share.

Reading: `body.read_call(body, endpoint, call_id=, defaults=, max_choices=) -> Call`, or
`fields.FieldError(code, param, message)`, which names what is wrong.

Writing: `answer.Head.whole | chunk`, `answer.ChoiceText(index, endpoint).whole | delta`,
`answer.usage`, `errors.error_object`; `token_text.token_texts` turns the engine's log
probabilities into the `TokenText`s that choices take.
"""
