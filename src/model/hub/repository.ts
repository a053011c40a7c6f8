/** Owns names on the hub: which are well formed, and so can never lead out of the cache. */
import { ConfigurationError } from '../../errors.ts';

/** A repository and what of it is wanted. */
export interface Repository {
  /** `org/name`. */
  readonly id: string;
  /** Branch, tag or commit. */
  readonly revision: string;
}

/** The revision where none is named. */
export const defaultRevision = 'main';

const maxRevisionCharacters = 200;
/** A part of a name begins with a letter, digit or `_`; `..` and `--` are excluded by what follows it. */
const namePart = String.raw`\w(?:(?:\w|[.-](?![.-])){0,94}\w)?`;
const namePattern = new RegExp(String.raw`^${namePart}/${namePart}$`, 'u');
const revisionPart = /^\w[\w.+-]*$/u;
const commitPattern = /^[0-9a-f]{40}$/u;

/** Whether a revision is a full commit, which never moves. */
export const isCommit = (revision: string): boolean => commitPattern.test(revision);

/** Whether a revision is a path of plain parts, such as `main`, `v1.0` or `refs/pr/1`. */
export function isRevision(text: string): boolean {
  const isPlain = (part: string): boolean => revisionPart.test(part) && !part.includes('..');
  return text.length <= maxRevisionCharacters && text.split('/').every(isPlain);
}

/** The repository that a setting such as `org/name@revision` names; null where it is no such name. */
export function parseRepository(text: string): Repository | null {
  const at = text.indexOf('@');
  const id = at < 0 ? text : text.slice(0, at);
  const revision = at < 0 ? defaultRevision : text.slice(at + 1);
  return namePattern.test(id) && isRevision(revision) ? { id, revision } : null;
}

/**
 * The same, for where nothing else is allowed.
 * @throws ConfigurationError
 */
export function requireRepository(text: string): Repository {
  const repository = parseRepository(text);
  if (repository === null) {
    throw new ConfigurationError([
      `${JSON.stringify(text)} is no model name: it must be org/name or org/name@revision`,
    ]);
  }
  return repository;
}

/** The form in which a repository is written, the revision only where it is not the default. */
export const showRepository = ({ id, revision }: Repository): string =>
  revision === defaultRevision ? id : `${id}@${revision}`;
