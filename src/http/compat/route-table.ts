/** Owns which family answers at which path, and which of several that share one. */
import type { CompatFamily, CompatRoute } from './family.ts';

/** A route with the family that it is of. */
export interface FamilyRoute {
  readonly family: CompatFamily;
  readonly route: CompatRoute;
}

/** Everything at one path. */
export interface PathEntry {
  /** As the families write it. */
  readonly path: string;
  /** What stands before `:name`; null for a path without one. */
  readonly prefix: string | null;
  /** By method, in the order of the families: the first speaks where no body was read. */
  readonly routes: ReadonlyMap<string, readonly [FamilyRoute, ...FamilyRoute[]]>;
  /** Methods to be named to callers, HEAD where there is GET. */
  readonly methods: readonly string[];
}

/** Every path of the families, those that stand for themselves alone before those with a name in them. */
export function routeTable(families: readonly CompatFamily[]): readonly PathEntry[] {
  const all = families.flatMap((family) => family.routes.map((route) => ({ family, route })));
  const paths = [...new Set(all.map(({ route }) => route.path))];
  const entries = paths.map((path) => {
    const routes = new Map<string, [FamilyRoute, ...FamilyRoute[]]>();
    for (const each of all.filter(({ route }) => route.path === path)) {
      const { method } = each.route;
      for (const name of method === 'GET' ? ['GET', 'HEAD'] : [method]) {
        const before = routes.get(name);
        if (before === undefined) routes.set(name, [each]);
        else before.push(each);
      }
    }
    return { path, prefix: prefixOf(path), routes, methods: [...routes.keys()] };
  });
  const rank = ({ prefix }: PathEntry) => (prefix === null ? 0 : 1);
  return entries.sort((a, b) => rank(a) - rank(b));
}

function prefixOf(path: string): string | null {
  const start = path.indexOf(':');
  return start === -1 ? null : path.slice(0, start);
}

/** The route that takes the body; where none says so, the first that takes any. */
export function routeFor(routes: readonly [FamilyRoute, ...FamilyRoute[]], body: unknown): FamilyRoute {
  const taking = routes.find(({ route }) => route.takes?.(body) === true);
  return taking ?? routes.find(({ route }) => route.takes === undefined) ?? routes[0];
}

/** What stands in the place of `:name`, percent-decoded; literally where it cannot be decoded. */
export function pathNameOf({ prefix }: PathEntry, path: string): string | null {
  if (prefix === null) return null;
  const name = path.slice(prefix.length);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
