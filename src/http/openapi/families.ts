/** Owns the description of other services' routes: each family's own words, put together with its errors. */
import type { CompatFamily } from '../compat/family.ts';
import type { TaskMethod } from '../../rpc/methods.ts';
import { isServed, jsonAnswer, type ApiFacts, type FamilyWords, type Operation } from './api.ts';
import { describeCohere } from './cohere.ts';
import { familyErrors } from './errors.ts';
import { describeJina } from './jina.ts';
import { describeOpenai } from './openai.ts';
import { ref } from './schema.ts';
import { describeTei } from './tei.ts';

const wordsOf: Readonly<Record<CompatFamily['name'], (facts: ApiFacts) => FamilyWords>> = {
  openai: describeOpenai,
  cohere: describeCohere,
  jina: describeJina,
  tei: describeTei,
};

/** The operations of the families. */
export const familyOperations = (families: readonly CompatFamily[], facts: ApiFacts): readonly Operation[] =>
  families.flatMap((family) => {
    const { tag, error, routes } = wordsOf[family.name](facts);
    return Object.entries(routes).map(([key, words]) => {
      const [method = '', path = ''] = key.split(' ');
      const { summary, description, body, answer, task, pathName } = words;
      const hasModel = pathName !== undefined || (body !== undefined && family.name !== 'tei');
      const operation: Operation = {
        method: method === 'GET' ? 'get' : 'post',
        path: path.replace(/:(\w+)/, '{$1}'),
        tag,
        summary,
        description: [description, ...absence(task, facts)].join(' '),
        needsKey: facts.hasKey,
        answers: {
          200: jsonAnswer(answer.description, answer.schema),
          ...familyErrors(family, ref(error), { hasBody: body !== undefined, hasModel }),
        },
      };
      const named = /:(\w+)/.exec(path)?.[1];
      return {
        ...operation,
        ...(body && { body }),
        ...(named !== undefined && { pathName: { name: named, description: pathName ?? '' } }),
      };
    });
  });

function absence(task: TaskMethod | null, facts: ApiFacts): string[] {
  return task === null || isServed(facts, task) ? [] : ['This server has no model for it and refuses every call.'];
}
