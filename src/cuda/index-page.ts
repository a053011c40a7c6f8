/** Owns the Python package index: where it says that a wheel lies. */
import { z } from 'zod';
import { lasting, passing } from '../model/hub/fault.ts';
import type { HubFault, RefusedAnswer } from '../model/hub/fault.ts';
import { readText } from '../model/hub/http-client.ts';
import type { HttpClient, HttpResponse } from '../model/hub/http-client.ts';
import type { HubLimits } from '../model/hub/limits.ts';
import type { Wheel } from './wheels.ts';

/** The variable that names the index, for a person who must look at it. */
export const indexVariable = 'PIP_INDEX_URL';

const jsonType = 'application/vnd.pypi.simple.v1+json';
const fileSchema = z.object({
  filename: z.string(),
  url: z.string(),
  hashes: z.record(z.string(), z.string()).default({}),
});
const pageSchema = z.object({ files: z.array(fileSchema) });

interface ListedFile {
  /** May be relative to the page. */
  readonly url: string;
  /** null where the index does not say it. */
  readonly sha256: string | null;
}

/** What a refusal of the index, or of the server that its files lie on, means. */
export function indexFaultOf({ status, address, retryAfterMs }: RefusedAnswer): HubFault {
  const answers = `${address} answers ${String(status)}`;
  if (status === 429 || status === 408 || status >= 500) return passing(answers, retryAfterMs);
  if (status === 401 || status === 403) {
    return lasting(
      `${answers}: put a name and a password for the index into ${indexVariable} (https://name:password@…)`,
    );
  }
  if (status === 407) return lasting('the proxy wants credentials (407): put them into HTTPS_PROXY or HTTP_PROXY');
  return lasting(`${answers}: check that ${indexVariable} is a Python package index that has it, or use --from`);
}

const fileNameOf = (url: string): string =>
  decodeURIComponent(new URL(url, 'http://index').pathname.split('/').at(-1) ?? '');

/** @source PEP 691, the index as JSON */
function findInJson(text: string, file: string): ListedFile | null | undefined {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    return undefined;
  }
  const files = pageSchema.safeParse(content).data?.files;
  if (files === undefined) return undefined;
  const found = files.find(({ filename }) => filename === file);
  return found === undefined ? null : { url: found.url, sha256: found.hashes['sha256'] ?? null };
}

/** @source PEP 503, the index as a page of links, which is all that some mirrors have */
function findInHtml(text: string, file: string): ListedFile | null {
  const links = [...text.matchAll(/<a\s[^>]*?href\s*=\s*["']([^"']+)["']/giu)].map(([, url = '']) => url);
  const url = links.find((link) => URL.canParse(link, 'http://index') && fileNameOf(link) === file);
  if (url === undefined) return null;
  return { url, sha256: /#sha256=([0-9a-f]{64})$/u.exec(url)?.[1] ?? null };
}

/**
 * The address of a wheel on the page of its project.
 * @throws HubFault where the page does not list it, or lists another file of the same name
 */
export function wheelAddress(wheel: Wheel, page: Pick<HttpResponse, 'address' | 'header'>, text: string): string {
  const isHtml = /^text\/html\b|\+html\b/iu.test(page.header('content-type') ?? '');
  const found = isHtml ? findInHtml(text, wheel.file) : findInJson(text, wheel.file);
  if (found === undefined) {
    throw lasting(`${page.address} answers something else than a Python package index would: check ${indexVariable}`);
  }
  if (found === null) {
    throw lasting(`${page.address} does not list ${wheel.file}: use another index (${indexVariable}), or --from`);
  }
  if (found.sha256 !== null && found.sha256 !== wheel.sha256) {
    throw lasting(`${page.address} lists ${wheel.file} with sha256 ${found.sha256} where ${wheel.sha256} is expected`);
  }
  if (!URL.canParse(found.url, page.address)) throw lasting(`${page.address} lists ${wheel.file} without an address`);
  return new URL(found.url, page.address).href;
}

/**
 * The address that the index gives for a wheel.
 * @throws HubFault
 */
export async function findWheel(
  client: HttpClient,
  indexUrl: string,
  wheel: Wheel,
  limits: HubLimits,
): Promise<string> {
  const page = await client.get(`${indexUrl}/${wheel.project}/`, indexFaultOf, {
    accept: `${jsonType}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1`,
  });
  return wheelAddress(wheel, page, await readText(page, limits));
}
