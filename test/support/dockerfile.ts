/** Owns reading a Dockerfile: its stages and their instructions, with what a stage inherits from another. */

/** One instruction, continuation lines joined. */
export interface Instruction {
  readonly name: string;
  readonly argument: string;
}

/** One `FROM … AS name` and what follows it. */
export interface Stage {
  readonly name: string;
  readonly base: string;
  readonly instructions: readonly Instruction[];
}

/** The stages in file order. Heredocs and parser directives are not understood. */
export function parseDockerfile(text: string): Stage[] {
  const lines = text
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n');
  const stages: { name: string; base: string; instructions: Instruction[] }[] = [];
  for (const line of lines.filter((candidate) => candidate.trim() !== '')) {
    const [, name = '', argument = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    const from = /^(\S+)(?:\s+AS\s+(\S+))?$/i.exec(argument);
    if (name === 'FROM' && from !== null) {
      stages.push({ name: from[2] ?? String(stages.length), base: from[1] ?? '', instructions: [] });
    } else {
      stages.at(-1)?.instructions.push({ name, argument });
    }
  }
  return stages;
}

/** Every instruction that makes up a stage, those of the stages it is based on first. */
export function instructionsOf(stages: readonly Stage[], name: string): Instruction[] {
  const stage = stages.find((candidate) => candidate.name === name);
  if (stage === undefined) return [];
  return [...instructionsOf(stages, stage.base), ...stage.instructions];
}

/** Arguments of one kind of instruction, in order; the last one is in force where only one can be. */
export function argumentsOf(instructions: readonly Instruction[], name: string): string[] {
  return instructions.filter((instruction) => instruction.name === name).map((instruction) => instruction.argument);
}

/** The variables that `ENV key=value …` instructions leave in a container. */
export function environmentOf(instructions: readonly Instruction[]): Record<string, string> {
  const pairs = argumentsOf(instructions, 'ENV').flatMap((argument) => argument.split(/\s+/));
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
}
