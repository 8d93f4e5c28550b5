# The official client for Python against `harness serve`, with the shipped example.
import os
import openai

client = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["TOKEN"])
QUESTION = "Where is my order 1042?"
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]

# Models.
models = [model.id for model in client.models.list()]
assert models[0] == "harness" and len(models) > 1, models
assert client.models.retrieve(models[1]).id == models[1]

# Chat completions, whole and streamed.
whole = client.chat.completions.create(model="harness", messages=MESSAGES, temperature=0)
assert "NP-77342" in whole.choices[0].message.content, whole
assert whole.choices[0].finish_reason == "stop" and whole.usage.total_tokens > 0, whole
chunks = list(client.chat.completions.create(
    model="harness", messages=MESSAGES, stream=True, stream_options={"include_usage": True}))
text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
assert "NP-77342" in text and chunks[-1].usage.total_tokens > 0, chunks
with client.chat.completions.stream(model="harness", messages=MESSAGES) as stream:
    assert "NP-77342" in stream.get_final_completion().choices[0].message.content

# Responses: whole, streamed, continued, and in a conversation.
first = client.responses.create(model="harness", input=QUESTION, instructions="Be brief.")
assert first.status == "completed" and "NP-77342" in first.output_text, first
assert any(item.type == "mcp_call" and item.output for item in first.output), first
assert client.responses.retrieve(first.id).output_text == first.output_text
events = list(client.responses.create(
    model="harness", input="And order 1042 again?", previous_response_id=first.id, stream=True))
types = [event.type for event in events]
assert types[0] == "response.created" and types[-1] == "response.completed", types
assert "response.output_text.delta" in types, types
assert events[-1].response.previous_response_id == first.id
with client.responses.stream(model="harness", input=QUESTION) as stream:
    for event in stream:
        pass
    assert "NP-77342" in stream.get_final_response().output_text
conversation = client.conversations.create()
for question in [QUESTION, "Thank you."]:
    answer = client.responses.create(model="harness", input=question, conversation=conversation.id)
    assert answer.conversation.id == conversation.id and answer.status == "completed", answer
assert client.conversations.delete(conversation.id).deleted

# Approvals: the refund is requested, and granted in the next response.
asked = client.responses.create(model="harness", input="My socks from order 1040 have a hole. Please refund them.")
requests = [item for item in asked.output if item.type == "mcp_approval_request"]
assert len(requests) == 1 and "1040" in requests[0].arguments, asked
granted = client.responses.create(model="harness", previous_response_id=asked.id, input=[
    {"type": "mcp_approval_response", "approval_request_id": requests[0].id, "approve": True}])
assert any(item.type == "mcp_call" and "RF-1040" in (item.output or "") for item in granted.output), granted
client.responses.delete(asked.id)

# Errors are those of OpenAI.
def raises(kind, code, call):
    try:
        call()
    except kind as error:
        assert error.code == code, error
        return
    raise AssertionError(f"no {kind}")

create = client.chat.completions.create
raises(openai.NotFoundError, "model_not_found", lambda: create(model="gpt-5", messages=MESSAGES))
raises(openai.BadRequestError, "unsupported_parameter", lambda: create(model="harness", messages=MESSAGES, n=2))
raises(openai.PermissionDeniedError, "approval_required", lambda: create(model="harness", messages=[
    {"role": "user", "content": "My socks from order 1040 have a hole. Please refund them."}]))
raises(openai.NotFoundError, "response_not_found", lambda: client.responses.retrieve(asked.id))
raises(openai.BadRequestError, "previous_response_not_found",
       lambda: client.responses.create(model="harness", input="x", previous_response_id=asked.id))
stranger = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key="wrong")
raises(openai.AuthenticationError, "server.token", stranger.models.list)
print("ok")
