/** Owns the one way of asking NVIDIA's tool: with a bound on its time and on its answer, and little of the environment. */
import type { Machine } from './machine.ts';
import { runTool, type ToolOutcome } from './run-bounded.ts';

/** Name of the tool. */
export const smi = 'nvidia-smi';
/** @unit bytes */
const maxOutputBytes = 65_536;

/** What the tool answers to these arguments. */
export function askSmi(machine: Machine, questions: readonly string[], timeoutMs: number): Promise<ToolOutcome> {
  const { PATH: path = '', SystemRoot: systemRoot } = machine.variables;
  const environment = { PATH: path, LC_ALL: 'C', ...(systemRoot === undefined ? {} : { SystemRoot: systemRoot }) };
  return runTool(smi, questions, { environment, timeoutMs, maxOutputBytes });
}
