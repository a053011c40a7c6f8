/** Owns the names of the files beside an output. */

/** The files beside an output. */
export const workPaths = (out: string) => ({
  work: `${out}.partial`,
  built: `${out}.building`,
  journal: `${out}.journal`,
  lock: `${out}.lock`,
  skipped: `${out}.skipped.jsonl`,
});

/** Those names of a folder that runs have written: outputs that have a journal, and what lies beside them. */
export function writtenNames(names: readonly string[]): ReadonlySet<string> {
  const all = new Set(names);
  const outputs = names.flatMap((name) => {
    const out = name.endsWith(journalEnd) ? name.slice(0, -journalEnd.length) : '';
    return out === '' ? [] : [out, ...Object.values(workPaths(out))];
  });
  return new Set(outputs.filter((name) => all.has(name)));
}

const journalEnd = workPaths('').journal;
