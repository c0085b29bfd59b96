"""The clients that people use, as they are, against the API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from http_site import Site
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

import openai
from outrider.config.schema import ServingSettings
from outrider.testing import AlphabetEngine


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site_:
        yield site_


@pytest.fixture
def client(site: Site) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=site.url + "/v1", api_key="none", max_retries=0) as client_:
        yield client_


def test_the_sync_client_gets_chats_and_completions(client: openai.OpenAI) -> None:
    chat = client.chat.completions.create(
        model="alphabet",
        messages=[{"role": "developer", "content": "be"}, {"role": "user", "content": "hello"}],
        logprobs=True,
        top_logprobs=1,
        seed=1,
        extra_body={"top_k": 5, "min_p": 0.0, "speculation": {"max_draft_length": 2}},
    )
    assert chat.choices[0].message.content == "pqrstuvwxyz"
    assert chat.usage is not None
    assert chat.usage.to_dict()["speculation"]["rounds"] > 0  # type: ignore[index]
    assert chat.choices[0].logprobs is not None
    text = client.completions.create(model="alphabet", prompt="ab", max_tokens=3, n=2)
    assert [choice.text for choice in text.choices] == ["cde", "cde"]
    assert [model.id for model in client.models.list()] == ["alphabet", "main"]
    assert client.models.retrieve("main").id == "main"


def test_the_sync_client_streams(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="alphabet",
            messages=[{"role": "user", "content": "hello"}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == "pqrstuvwxyz"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 12


def test_the_raw_response_carries_the_headers(client: openai.OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model="alphabet", messages=[{"role": "user", "content": "hello"}]
    )
    assert raw.headers["x-outrider-mode"] == "speculative"
    assert raw.parse().choices[0].finish_reason == "stop"


def test_errors_are_the_clients_own_classes(client: openai.OpenAI) -> None:
    messages = [{"role": "user", "content": "hello"}]
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="alphabet", messages=messages, temperature=-1)  # type: ignore[arg-type]
    assert bad.value.param == "temperature"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt", messages=messages)  # type: ignore[arg-type]


def test_an_error_in_the_middle_of_a_stream_reaches_the_client() -> None:
    engine, settings = AlphabetEngine(delay_s=0.02), ServingSettings(deadline_s=0.3)
    with (
        Site(engine=engine, settings=settings) as site_,
        openai.OpenAI(base_url=site_.url + "/v1", api_key="none") as client_,
    ):
        stream = client_.completions.create(
            model="main",
            prompt="a",
            stream=True,
            max_tokens=2000,
            extra_body={"ignore_eos": True},
        )
        with pytest.raises(openai.APIError, match="deadline_s"):
            list(stream)


def test_the_async_client_gets_many_at_once(site: Site) -> None:
    async def ask() -> list[str]:
        async with openai.AsyncOpenAI(base_url=site.url + "/v1", api_key="none") as client_:

            async def one(letter: str) -> str:
                stream = await client_.completions.create(
                    model="main", prompt=letter, max_tokens=2, stream=True
                )
                return "".join([chunk.choices[0].text async for chunk in stream])

            return list(await asyncio.gather(*map(one, "abcdefgh")))

    assert asyncio.run(ask()) == ["bc", "cd", "de", "ef", "fg", "gh", "hi", "ij"]


def test_langchain_invokes_and_streams(site: Site) -> None:
    chat = ChatOpenAI(
        base_url=site.url + "/v1", api_key=SecretStr("none"), model="alphabet", max_retries=0
    )
    assert chat.invoke("hello").content == "pqrstuvwxyz"
    assert "".join(str(chunk.content) for chunk in chat.stream("hello")) == "pqrstuvwxyz"
