/** Owns the client's entry for browsers: HTTP only, and nothing of Node. */
import { openClient, type Client } from './client.ts';
import { createHttpTransport } from './http.ts';
import type { HttpClientOptions } from './options.ts';
import { defaultMaxAnswerBytes } from './transport.ts';

export type { Client } from './client.ts';
export { RcpError, type RcpErrorData, type RcpErrorName } from './error.ts';
export type { IdentityMismatch } from './identity.ts';
export type {
  Capabilities,
  EmbedCapability,
  ModelCapability,
  MultiVectorCapability,
  RerankCapability,
  ServedDevice,
  ServedModel,
  ServerInfo,
  SparseEmbedCapability,
  VectorCapability,
  VendorInfo,
} from './info.ts';
export type {
  CallOptions,
  ClientOptions,
  EmbedOptions,
  HttpClientOptions,
  Identities,
  ModelCallOptions,
  MultiVectorOptions,
  Progress,
  RerankOptions,
  TextsOptions,
  VectorForms,
  VectorOutput,
} from './options.ts';
export type {
  EmbedResult,
  MultiVectorResult,
  RerankResult,
  SparseEmbedResult,
  SparseVector,
  Usage,
} from './results.ts';
export type { RetryPolicy } from './retry.ts';

/**
 * Connects to the server at an address such as `http://127.0.0.1:8000` and reads what it offers.
 * @throws RcpError; the signal's reason; TypeError for an address, a key or a header that no request can carry
 */
export async function connect(target: string | URL, options: HttpClientOptions = {}): Promise<Client> {
  const { apiKey, headers, maxAnswerBytes = defaultMaxAnswerBytes } = options;
  const transport = createHttpTransport(target, { apiKey, headers, fetch: options.fetch, maxAnswerBytes });
  return openClient(transport, options);
}
