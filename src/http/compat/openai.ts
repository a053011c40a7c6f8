/** Owns the routes that OpenAI's clients call, and the shape of its errors. */
import type { ErrorName, ServiceError } from '../../errors.ts';
import { unknownModel } from '../../rpc/choose-model.ts';
import type { ModelFacts } from '../../rpc/served-facts.ts';
import type { Answer } from '../answer.ts';
import type { CompatCall, CompatFamily, CompatRoute } from './family.ts';
import { answerEmbeddings } from './openai/embeddings.ts';
import type { TokenIdRule } from './openai/request.ts';
import { serviceHeaders, serviceMessage, serviceStatus } from './service-status.ts';

export type { TokenIdRule };

/** `/v1/embeddings`, which text-embeddings-inference has as `/embeddings` too, and the list of models. */
export function createOpenaiFamily(tokenIds: TokenIdRule): CompatFamily {
  const embeddings = (path: string): CompatRoute => ({
    method: 'POST',
    path,
    countsAs: 'embed',
    answer: (call) => answerEmbeddings(call, tokenIds),
  });
  return {
    name: 'openai',
    routes: [
      embeddings('/v1/embeddings'),
      embeddings('/embeddings'),
      { method: 'GET', path: '/v1/models', answer: listModels },
      { method: 'GET', path: '/v1/models/:id', answer: showModel },
    ],
    errorAnswer,
  };
}

const listModels = ({ served }: CompatCall): Answer => ({
  status: 200,
  body: JSON.stringify({ object: 'list', data: served.models.map(modelOf) }),
});

function showModel({ served, pathName }: CompatCall): Answer {
  const found = served.models.find(({ model }) => model === pathName);
  if (found !== undefined) return { status: 200, body: JSON.stringify(modelOf(found)) };
  throw unknownModel(
    pathName ?? '',
    served.models.map(({ model }) => model),
    'model',
  );
}

/** When a model was made nobody knows here; clients want a number. */
const modelOf = ({ model }: ModelFacts) => ({ id: model, object: 'model', created: 0, owned_by: 'trivec' });

/** The words for an error by which clients of OpenAI tell errors apart. */
interface ErrorWords {
  readonly type: string;
  readonly code: string | null;
}

const invalidRequest: ErrorWords = { type: 'invalid_request_error', code: null };
const words: Readonly<Record<ErrorName, ErrorWords>> = {
  parse: invalidRequest,
  invalidRequest,
  invalidParams: invalidRequest,
  unsupportedOption: { type: 'invalid_request_error', code: 'unsupported_value' },
  versionMismatch: invalidRequest,
  unauthorized: { type: 'invalid_request_error', code: 'invalid_api_key' },
  capabilityNotAdvertised: { type: 'invalid_request_error', code: 'unsupported_endpoint' },
  methodNotFound: { type: 'invalid_request_error', code: 'unknown_url' },
  tooLarge: { type: 'invalid_request_error', code: 'request_too_large' },
  overloaded: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  cancelled: { type: 'server_error', code: 'cancelled' },
  internal: { type: 'server_error', code: 'internal_error' },
  notInitialized: { type: 'server_error', code: 'service_unavailable' },
  unavailable: { type: 'server_error', code: 'service_unavailable' },
  deadlineExceeded: { type: 'server_error', code: 'timeout' },
};

/** `{error: {message, type, param, code}}`; a text that is too long and an unknown model have OpenAI's own codes. */
function errorAnswer(error: ServiceError): Answer {
  const status = serviceStatus(error);
  const { field, tokens } = error.data;
  const { type, code } = words[error.errorName];
  const ownCode = status === 404 && field === 'model' ? 'model_not_found' : tokens === undefined ? code : tooLongCode;
  // OpenAI names the member of the body; the message names the place in it.
  const param = field?.replace(/\[.*$/, '') ?? null;
  const body = { error: { message: serviceMessage(error), type, param, code: ownCode } };
  return { status, headers: serviceHeaders(error), body: JSON.stringify(body) };
}

const tooLongCode = 'context_length_exceeded';
