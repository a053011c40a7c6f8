import { describe, expect, it } from 'vitest';
import { closedAfterEach } from '../support/harness/opened.ts';
import { fillQueue } from '../support/harness/full-queue.ts';
import type { HttpAnswer, HttpClient, HttpHeaders } from '../support/harness/http-client.ts';

/** Text that no answer to a refused call may hold. */
const secret = 'sesame';
const embeddingsPath = '/v1/embeddings';
const start = closedAfterEach();

interface OpenaiError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

const jsonOf = ({ body }: HttpAnswer) => JSON.parse(body) as Readonly<Record<string, unknown>>;
const errorOf = (answer: HttpAnswer) => jsonOf(answer)['error'] as OpenaiError;

async function embed(client: HttpClient, body: unknown, headers?: HttpHeaders, path = embeddingsPath) {
  const answer = await client.post(path, typeof body === 'string' ? body : JSON.stringify(body), headers);
  expect(answer.headers['content-type']).toBe('application/json');
  if (answer.status !== 200) expect(answer.body).not.toContain(secret);
  return answer;
}

describe('embeddings as OpenAI has them', () => {
  it.each([embeddingsPath, '/embeddings'])(
    '%s gives the vectors of embed, in the order of the inputs',
    async (path) => {
      const { client } = await start();
      const input = ['ab', 'c'];
      const { status, body, headers } = await embed(client, { input, model: 'fix@1', user: 'somebody' }, {}, path);
      expect(status).toBe(200);
      expect(JSON.parse(body)).toEqual({
        object: 'list',
        data: [
          { object: 'embedding', index: 0, embedding: [97, 98, 0, 0] },
          { object: 'embedding', index: 1, embedding: [99, 0, 0, 0] },
        ],
        model: 'fix@1',
        usage: { prompt_tokens: 3, total_tokens: 3 },
      });
      const rcp = await client.ask(
        `{"jsonrpc":"2.0","id":1,"method":"embed","params":{"inputs":${JSON.stringify(input)}}}`,
      );
      const { result } = rcp.value as { readonly result: { readonly vectors: unknown } };
      const { data } = jsonOf({ status, body, headers }) as {
        readonly data: readonly { readonly embedding: unknown }[];
      };
      expect(data.map(({ embedding }) => embedding)).toEqual(result.vectors);
    },
  );

  it('a string alone is a list of one', async () => {
    const { client } = await start();
    const answer = jsonOf(await embed(client, { input: 'ab' }));
    expect(answer['data']).toEqual([{ object: 'embedding', index: 0, embedding: [97, 98, 0, 0] }]);
  });

  it('base64 is the little-endian float32 of the same values', async () => {
    const { client } = await start();
    const { data } = jsonOf(await embed(client, { input: ['ab'], encoding_format: 'base64' })) as {
      readonly data: readonly { readonly embedding: string }[];
    };
    const bytes = Buffer.from(data[0]?.embedding ?? '', 'base64');
    expect([0, 4, 8, 12].map((at) => bytes.readFloatLE(at))).toEqual([97, 98, 0, 0]);
  });

  it('a name of another service means the first model, and the answer says which one ran', async () => {
    const { client } = await start();
    const answer = await embed(client, { input: 'a', model: 'text-embedding-3-small' });
    expect(answer.status).toBe(200);
    expect(jsonOf(answer)['model']).toBe('fix@1');
  });

  it('with --compat-models=served a name that is not served is 404 with the code of OpenAI', async () => {
    const { client } = await start({ compatModels: 'served' });
    const answer = await embed(client, { input: secret, model: 'text-embedding-3-small' });
    expect(answer.status).toBe(404);
    expect(errorOf(answer)).toMatchObject({ type: 'invalid_request_error', param: 'model', code: 'model_not_found' });
    expect((await embed(client, { input: 'a', model: 'fix@1' })).status).toBe(200);
    expect((await embed(client, { input: 'a' })).status).toBe(200);
    // A model of another task is none of this one.
    expect((await embed(client, { input: 'a', model: 'fix-r@1' })).status).toBe(404);
  });

  it('fields that it does not know are ignored', async () => {
    const { client } = await start();
    const noise = { dimensions: null, encoding_format: null, user: 5, truncate: 'x', 'x-trivec': { output: 'int8' } };
    expect((await embed(client, { input: 'a', ...noise })).status).toBe(200);
  });

  it.each([
    ['no body', '', 'null'],
    ['half a body', `{"input":"${secret}"`, 'null'],
    ['a list', '[]', 'body'],
    ['a text', '"x"', 'body'],
    ['null', 'null', 'null'],
    ['no input', '{}', 'input'],
    ['input null', '{"input":null}', 'input'],
    ['a number', '{"input":5}', 'input'],
    ['an object', '{"input":{"text":"a"}}', 'input'],
    ['an empty text', '{"input":""}', 'input'],
    ['an empty list', '{"input":[]}', 'input'],
    ['an empty text in a list', `{"input":["${secret}",""]}`, 'input'],
    ['a number among texts', `{"input":["${secret}",5]}`, 'input'],
    ['a list among texts', `{"input":["${secret}",[1]]}`, 'input'],
    ['null among texts', `{"input":["${secret}",null]}`, 'input'],
    ['too many', '{"input":["a","a","a","a","a"]}', 'input'],
    ['another format', '{"input":"a","encoding_format":"hex"}', 'encoding_format'],
    ['no format', '{"input":"a","encoding_format":5}', 'encoding_format'],
    ['dimensions 0', '{"input":"a","dimensions":0}', 'dimensions'],
    ['dimensions as a text', '{"input":"a","dimensions":"2"}', 'dimensions'],
    ['a cut that the model does not allow', '{"input":"a","dimensions":2}', 'dimensions'],
    ['more dimensions than there are', '{"input":"a","dimensions":5}', 'dimensions'],
    ['a model that is no text', '{"input":"a","model":5}', 'model'],
  ])('%s is 400, and names the member', async (_, body, param) => {
    const { client, server } = await start();
    const ranBefore = server.engine.batches.length;
    const answer = await embed(client, body);
    expect(answer.status).toBe(400);
    const { message, type, param: named, code } = errorOf(answer);
    expect({ type, named: String(named) }).toEqual({ type: 'invalid_request_error', named: param });
    expect(message).not.toBe('');
    expect(code === null || typeof code === 'string').toBe(true);
    expect(server.engine.batches).toHaveLength(ranBefore);
  });

  it('one input over the limit is refused with the limit and the count, and the limit itself is not', async () => {
    const { client } = await start({ batchLimit: 2048, maxQueuedItems: 5000, maxBatchItems: 64 });
    const inputs = (count: number) => ({ input: Array.from({ length: count }, () => 'a') });
    const refused = await embed(client, inputs(2049));
    expect(refused.status).toBe(400);
    expect(errorOf(refused).message).toMatch(/input: has 2049 .* 2048/);
    const { data } = jsonOf(await embed(client, inputs(2048))) as { readonly data: readonly unknown[] };
    expect(data).toHaveLength(2048);
  });
});

describe('token ids as OpenAI takes them', () => {
  it.each([[[97, 98]], [[[97, 98], [99]]]])('%j is refused with 400 that tells how to send texts', async (input) => {
    const { client } = await start();
    const answer = await embed(client, { input });
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toMatchObject({ type: 'invalid_request_error', param: 'input' });
    expect(errorOf(answer).message).toContain('check_embedding_ctx_length=False');
    expect(errorOf(answer).message).toContain('--openai-token-ids=model');
  });

  it('with --openai-token-ids=model they are the ids of the model', async () => {
    const { client } = await start({ openaiTokenIds: 'model' });
    const ofTexts = jsonOf(await embed(client, { input: ['ab', 'c'] }));
    expect(jsonOf(await embed(client, { input: [[97, 98], [99]] }))).toEqual(ofTexts);
    const { data } = jsonOf(await embed(client, { input: [97, 98] })) as { readonly data: readonly unknown[] };
    expect(data).toEqual([{ object: 'embedding', index: 0, embedding: [97, 98, 0, 0] }]);
  });

  it.each([
    ['beyond the vocabulary', [[97], [100_000]], 'input[1]'],
    ['negative', [[97, -1]], 'input[0][1]'],
    ['half', [97, 1.5], 'input[1]'],
    ['a text among ids', [97, 'a'], 'input[1]'],
    ['no list among lists', [[97], 98], 'input[1]'],
    ['an empty list of ids', [[97], []], 'input[1]'],
  ])('an id that is %s is 400, and the message says where', async (_, input, place) => {
    const { client } = await start({ openaiTokenIds: 'model' });
    const answer = await embed(client, { input });
    expect(answer.status).toBe(400);
    expect(errorOf(answer).param).toBe('input');
    expect(errorOf(answer).message).toContain(`${place}:`);
  });
});

describe('models as OpenAI lists them', () => {
  it('every served model is listed, and found by its name', async () => {
    const { client } = await start();
    const list = jsonOf(await client.exchange('GET', '/v1/models'));
    const ids = (list['data'] as readonly { readonly id: string }[]).map(({ id }) => id);
    expect(list['object']).toBe('list');
    expect(ids).toEqual(['fix@1', 'fix-s@1', 'fix-m@1', 'fix-r@1']);
    for (const path of ['/v1/models/fix@1', '/v1/models/fix%401']) {
      const found = jsonOf(await client.exchange('GET', path));
      expect(found).toEqual({ id: 'fix@1', object: 'model', created: 0, owned_by: 'trivec' });
    }
  });

  it.each(['/v1/models/gpt-4', '/v1/models/org/name', '/v1/models/', '/v1/models/%zz'])('%s is 404', async (path) => {
    const { client } = await start();
    const answer = await client.exchange('GET', path);
    expect(answer.status).toBe(404);
    expect(errorOf(answer)).toMatchObject({ param: 'model', code: 'model_not_found' });
  });

  it('needs the key where one is set', async () => {
    const { client } = await start({ apiKey: ['key'] });
    expect((await client.exchange('GET', '/v1/models')).status).toBe(401);
    const answer = await client.exchange('GET', '/v1/models', '', { Authorization: 'Bearer key' });
    expect(answer.status).toBe(200);
  });
});

describe('what a compatible route does as RCP does', () => {
  it('a call without the key, or with another, is 401 in the shape of the service', async () => {
    const { client, server } = await start({ apiKey: ['key'] });
    for (const Authorization of [null, 'Bearer other', 'key']) {
      const answer = await embed(client, { input: secret }, { Authorization });
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toBe('Bearer');
      expect(errorOf(answer)).toMatchObject({ type: 'invalid_request_error', code: 'invalid_api_key' });
    }
    expect((await embed(client, { input: 'a' }, { Authorization: 'Bearer key' })).status).toBe(200);
    expect(await server.service.metrics.registry.metrics()).toContain(
      'trivec_refused_requests_total{reason="unauthorized"} 3',
    );
  });

  it('a full queue is 429 with Retry-After in whole seconds', async () => {
    const { client, server } = await start();
    const accepted = await fillQueue(client, server);
    const answer = await embed(client, { input: secret });
    expect(answer.status).toBe(429);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(answer.headers['retry-after']).toMatch(/^\d+$/);
    expect(errorOf(answer)).toMatchObject({ type: 'rate_limit_error', code: 'rate_limit_exceeded' });
    server.engine.release();
    await Promise.all(accepted);
  });

  it('calls beyond the rate of a key are 429 with Retry-After', async () => {
    const { client } = await start({ apiKey: ['key'], keyRequestsPerSecond: 1, keyRequestBurst: 1 });
    const authorization = { Authorization: 'Bearer key' };
    expect((await embed(client, { input: 'a' }, authorization)).status).toBe(200);
    const answer = await embed(client, { input: secret }, authorization);
    expect(answer.status).toBe(429);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  });

  it('a server on its way out is 503 with Retry-After, and ends the connection', async () => {
    const { client, server } = await start();
    server.service.beginDrain();
    const frame = JSON.stringify({ input: secret });
    const text = await client.exchangeBytes(
      `POST ${embeddingsPath} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${frame.length}\r\n\r\n${frame}`,
    );
    expect(text).toMatch(/^HTTP\/1.1 503 /);
    expect(text).toMatch(/\r\nRetry-After: 1\r\n/);
    expect(text).toContain('"code":"service_unavailable"');
    expect(text).not.toContain(secret);
  });

  it('a caller that leaves is forgotten: nothing queued of it runs', async () => {
    const { client, server } = await start();
    const first = embed(client, { input: 'hold' });
    await server.untilBusy(1, 0);
    const second = embed(client, { input: 'queued' });
    await server.untilBusy(1, 1);
    const { socket } = await client.open();
    const frame = JSON.stringify({ input: 'forgotten' });
    socket.write(
      `POST ${embeddingsPath} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${frame.length}\r\n\r\n${frame}`,
    );
    await server.untilBusy(2, 1);
    socket.destroy();
    await server.untilBusy(2, 0);
    server.engine.release();
    await Promise.all([first, second]);
    const ran = server.engine.batches.flatMap(({ items }) => items.map(({ ids }) => Buffer.from(ids).toString()));
    expect(ran).not.toContain('forgotten');
  });

  it('a call that takes longer than the deadline is 504', async () => {
    const { client, server } = await start({ deadlineMs: 100 });
    const answer = await client.post(embeddingsPath, JSON.stringify({ input: 'hold' }));
    expect(answer.status).toBe(504);
    expect(errorOf(answer).code).toBe('timeout');
    server.engine.release();
  });

  it('a device that fails is 500 without inside knowledge', async () => {
    const { client } = await start();
    const answer = await client.post(embeddingsPath, JSON.stringify({ input: 'boom' }));
    expect(answer.status).toBe(500);
    expect(errorOf(answer).type).toBe('server_error');
    expect(answer.body).not.toContain('fixture');
  });

  it.each([
    ['POST', '/v1/models', 'GET, HEAD, OPTIONS'],
    ['GET', embeddingsPath, 'POST, OPTIONS'],
    ['PUT', embeddingsPath, 'POST, OPTIONS'],
    ['DELETE', '/v1/models/fix@1', 'GET, HEAD, OPTIONS'],
  ])('%s %s is 405 and says what is allowed', async (method, path, allow) => {
    const { client } = await start();
    const answer = await client.exchange(method, path);
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toBe(allow);
    expect(errorOf(answer).type).toBe('invalid_request_error');
  });

  it('a packed body is 415, another host and another origin are 403', async () => {
    const { client } = await start();
    const statusWith = async (headers: HttpHeaders) => (await embed(client, { input: secret }, headers)).status;
    expect(await statusWith({ 'Content-Encoding': 'gzip' })).toBe(415);
    expect(await statusWith({ Host: 'evil.example' })).toBe(403);
    expect(await statusWith({ Origin: 'https://evil.example' })).toBe(403);
  });

  it('a page of an allowed origin may send the headers that it asks for', async () => {
    const { client } = await start({ corsOrigins: ['https://app.example'] });
    const origin = { Origin: 'https://app.example' };
    const asked = 'authorization,content-type,x-stainless-lang';
    const preflight = await client.exchange('OPTIONS', embeddingsPath, '', {
      ...origin,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': asked,
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers['access-control-allow-origin']).toBe('https://app.example');
    expect(preflight.headers['access-control-allow-headers']).toBe(asked);
    expect((await embed(client, { input: 'a' }, origin)).headers['access-control-allow-origin']).toBe(
      'https://app.example',
    );
  });

  it('a body over the limit is 413, one that is not UTF-8 is 400', async () => {
    const { client } = await start();
    const large = await client.post(embeddingsPath, JSON.stringify({ input: secret.repeat(20_000) }));
    expect(large.status).toBe(413);
    expect(errorOf(large).message).toContain('65536');
    const bytes = Buffer.from([...Buffer.from('{"input":"'), 0xff, ...Buffer.from('"}')]);
    expect((await client.post(embeddingsPath, bytes)).status).toBe(400);
  });

  it('a body that is nested too deep is 400', async () => {
    const { client } = await start({ bodyLimitBytes: 1_048_576 });
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
    expect((await client.post(embeddingsPath, `{"input":${deep}}`)).status).toBe(400);
  });

  it('is counted once under the method of RCP, and says where its time went', async () => {
    const { client, server } = await start();
    const answer = await embed(client, { input: ['ab', 'c'] }, { 'X-Request-Id': 'mine' });
    expect(answer.headers['x-request-id']).toBe('mine');
    expect(answer.headers['server-timing']).toMatch(
      /^tokenise;dur=[\d.]+, queue;dur=[\d.]+, run;dur=[\d.]+, total;dur=[\d.]+$/,
    );
    const text = await server.service.metrics.registry.metrics();
    expect(text).toMatch(/trivec_calls_total\{method="embed",outcome="ok",transport="http"\} 1\n/);
    expect(text).toMatch(/trivec_call_inputs_total\{method="embed",model="fix@1"\} 2\n/);
  });
});
