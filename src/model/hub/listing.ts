/** Owns what the hub says about a repository: the commit of a branch, the files of a commit. */
import { z } from 'zod';
import type { HubClient } from './client.ts';
import { lasting } from './fault.ts';
import type { HubFile } from './file-hash.ts';
import { readText } from './http-client.ts';
import type { HttpResponse } from './http-client.ts';
import type { HubLimits } from './limits.ts';
import { isCommit } from './repository.ts';
import type { Repository } from './repository.ts';

const revisionSchema = z.object({ sha: z.string().refine(isCommit) });
const digest = (digits: number) => z.string().regex(new RegExp(`^[0-9a-f]{${String(digits)}}$`, 'u'));
const size = z.int().nonnegative();
const entrySchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('file'),
    path: z.string(),
    oid: digest(40),
    size,
    lfs: z.object({ oid: digest(64), size }).nullish(),
  }),
  z.object({ type: z.literal('directory') }),
]);
const treeSchema = z.array(entrySchema);

/** Whether a path from the hub stays inside the folder it is joined to, on every operating system. */
export function isInsidePath(path: string): boolean {
  const isPlain = (part: string): boolean =>
    part !== '' && part !== '.' && part !== '..' && !/[\\:\x00-\x1f]/u.test(part);
  return path.split('/').every(isPlain);
}

async function readAnswer<Content>(
  response: HttpResponse,
  schema: z.ZodType<Content>,
  limits: HubLimits,
): Promise<Content> {
  const text = await readText(response, limits);
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw lasting(`${response.address} answers with a page that is not JSON: check HF_ENDPOINT and the proxy`);
  }
  const parsed = schema.safeParse(content);
  if (!parsed.success) throw lasting(`${response.address} answers something else than a hub would: check HF_ENDPOINT`);
  return parsed.data;
}

const modelUrl = (client: HubClient, { id }: Repository): string => `${client.endpoint}/api/models/${id}`;

/** The commit that the revision is now; throws a HubFault where the hub does not say. */
export async function readCommit(client: HubClient, repository: Repository, limits: HubLimits): Promise<string> {
  const url = `${modelUrl(client, repository)}/revision/${encodeURIComponent(repository.revision)}`;
  const response = await client.get(url, repository);
  return (await readAnswer(response, revisionSchema, limits)).sha;
}

/** Address of the next page of a listing; null after the last one. */
export function nextPage(link: string | null, from: string): string | null {
  const target = /<([^>]+)>\s*;\s*rel="?next"?/u.exec(link ?? '')?.[1];
  if (target === undefined || !URL.canParse(target, from)) return null;
  const url = new URL(target, from);
  const { origin } = new URL(from);
  // A hub behind a mirror may name its own host; the listing goes on at the host that was asked.
  return `${origin}${url.pathname}${url.search}`;
}

/** Every file of a commit; throws a HubFault where the hub does not list them. */
export async function readFiles(
  client: HubClient,
  repository: Repository,
  commit: string,
  limits: HubLimits,
): Promise<HubFile[]> {
  const files: HubFile[] = [];
  let url: string | null = `${modelUrl(client, repository)}/tree/${commit}?recursive=true`;
  for (let pages = 0; url !== null; pages += 1) {
    if (pages >= limits.maxListingPages)
      throw lasting(`${repository.id} has more files than ${String(pages)} pages list`);
    const response: HttpResponse = await client.get(url, repository);
    for (const entry of await readAnswer(response, treeSchema, limits)) {
      if (entry.type !== 'file') continue;
      if (!isInsidePath(entry.path))
        throw lasting(`${repository.id} lists ${JSON.stringify(entry.path)}, which leads out of it`);
      files.push({ path: entry.path, sizeBytes: entry.lfs?.size ?? entry.size, hash: entry.lfs?.oid ?? entry.oid });
    }
    url = nextPage(response.header('link'), url);
  }
  return files;
}

/** Address of a file of a commit. */
export function fileUrl(client: HubClient, repository: Repository, commit: string, file: HubFile): string {
  const path = file.path.split('/').map(encodeURIComponent).join('/');
  return `${client.endpoint}/${repository.id}/resolve/${commit}/${path}`;
}
