/** Owns the files of `deploy/observability` as the tests read them: every expression with the place it stands in. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Folder of the dashboards, rules and settings. */
export const observabilityFolder = fileURLToPath(new URL('../../deploy/observability', import.meta.url));

/** An expression, and where it stands. */
export interface PlacedExpression {
  readonly place: string;
  readonly expression: string;
}

/** The alerts of a file of rules: the name and the expression of each. */
export function readAlerts(text: string): PlacedExpression[] {
  const lines = text.split('\n');
  return lines.flatMap((line, index) => {
    const place = /^\s*- alert: (\S+)$/.exec(line)?.[1];
    if (place === undefined) return [];
    const exprAt = lines.findIndex((other, at) => at > index && /^\s*expr: /.test(other));
    const [, indent = '', first = ''] = /^(\s*)expr: (.*)$/.exec(lines[exprAt] ?? '') ?? [];
    if (first !== '|') return [{ place, expression: first }];
    const isInside = (other: string) => other.startsWith(`${indent} `);
    const length = lines.slice(exprAt + 1).findIndex((other) => !isInside(other));
    const block = lines.slice(exprAt + 1, exprAt + 1 + length);
    return [{ place, expression: block.map((other) => other.trim()).join(' ') }];
  });
}

interface Panel {
  readonly title: string;
  readonly targets: readonly { readonly expr: string }[];
}

/** Every expression of the dashboard, its variables filled in as for all servers. */
export function readDashboard(): { panels: readonly Panel[]; expressions: readonly PlacedExpression[] } {
  const file = `${observabilityFolder}/grafana/dashboards/trivec.json`;
  const { panels } = JSON.parse(readFileSync(file, 'utf8')) as { panels: readonly Panel[] };
  const expressions = panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => ({
      place: title,
      expression: expr.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '1m'),
    })),
  );
  return { panels, expressions };
}

const kubernetesComponents = fileURLToPath(new URL('../../deploy/kubernetes/components', import.meta.url));

/** The queries by which the autoscalers of Kubernetes decide, the adapter's own selection taken out. */
export const readScalingQueries = (): PlacedExpression[] =>
  [
    ['keda/scaled-object.yaml', /^\s*query: (.+)$/mu] as const,
    ['hpa/horizontal-pod-autoscaler.yaml', /^#\s+metricsQuery: '(.+)'$/mu] as const,
  ].map(([place, pattern]) => {
    const found = pattern.exec(readFileSync(`${kubernetesComponents}/${place}`, 'utf8'))?.[1];
    if (found === undefined) throw new Error(`${place} has no query`);
    return { place, expression: found.replace('{<<.LabelMatchers>>}', '') };
  });

/** The alerts of this repository. */
export const readOwnAlerts = (): PlacedExpression[] =>
  readAlerts(readFileSync(`${observabilityFolder}/alerts.yml`, 'utf8'));
