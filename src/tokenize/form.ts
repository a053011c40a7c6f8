/** Owns what a kind of text has besides the model's template: its own limit, a marker, a filling. */
import type { AssembledIds } from './template.ts';
import type { KeptSide } from './window.ts';

/** How texts of one kind become ids. */
export interface TextForm {
  /** Most tokens, special ones and the marker included; null: the model's limit. */
  readonly maxTokens: number | null;
  /** False: the text's own tokens only. */
  readonly hasSpecialTokens: boolean;
  /** Token put behind the first one once the text is cut; null: none. */
  readonly markerId: number | null;
  /** Token that fills texts up to the limit; null: they keep their lengths. */
  readonly expansionId: number | null;
  /** Whether the other tokens see the filling. */
  readonly isExpansionAttended: boolean;
  /** Prompt that the texts already begin with and whose tokens are counted; empty: none. */
  readonly countedPrompt: string;
  /** Prompt that goes, as tokens, before what is ids already; empty: none. */
  readonly idPrompt: string;
  /** The end that is kept of what is too long; null: the one that the model keeps. */
  readonly keptSide: KeptSide | null;
}

/** The text between the model's special tokens, and nothing else. */
export const plainForm: TextForm = {
  maxTokens: null,
  hasSpecialTokens: true,
  markerId: null,
  expansionId: null,
  isExpansionAttended: false,
  countedPrompt: '',
  idPrompt: '',
  keptSide: null,
};

/** Tokens that the form itself puts into a text, its filling aside. */
export const markerTokens = ({ markerId }: TextForm): number => (markerId === null ? 0 : 1);

/** Ids ready to run, and how many of them the others see. */
export interface ShapedIds extends AssembledIds {
  /** Absent where all are seen. */
  readonly attendedTokens?: number;
}

/** The marker stands behind the first token, alone where there is none, and has that token's segment. */
function withMarker({ ids, typeIds }: AssembledIds, markerId: number): AssembledIds {
  const place = Math.min(1, ids.length);
  const insert = <Numbers extends Int32Array | Uint8Array>(into: Numbers, from: Numbers, value: number): Numbers => {
    into.set(from.subarray(0, place));
    into[place] = value;
    into.set(from.subarray(place), place + 1);
    return into;
  };
  const tokens = ids.length + 1;
  return {
    ids: insert(new Int32Array(tokens), ids, markerId),
    typeIds: typeIds === null ? null : insert(new Uint8Array(tokens), typeIds, typeIds[0] ?? 0),
  };
}

function filled({ ids, typeIds }: AssembledIds, fillId: number, tokens: number): AssembledIds {
  const all = new Int32Array(tokens).fill(fillId, ids.length);
  all.set(ids);
  if (typeIds === null) return { ids: all, typeIds };
  const allTypeIds = new Uint8Array(tokens);
  allTypeIds.set(typeIds);
  return { ids: all, typeIds: allTypeIds };
}

/**
 * The ids with the marker and the filling of their form; `maxTokens` is the length to fill up to.
 * @source PyLate, `ColBERT.tokenize`; ColBERT, `QueryTokenizer.tensorize`
 */
export function shapeIds(assembled: AssembledIds, form: TextForm, maxTokens: number): ShapedIds {
  const marked = form.markerId === null ? assembled : withMarker(assembled, form.markerId);
  const attendedTokens = marked.ids.length;
  if (form.expansionId === null || attendedTokens >= maxTokens) return marked;
  const expanded = filled(marked, form.expansionId, maxTokens);
  return form.isExpansionAttended ? expanded : { ...expanded, attendedTokens };
}
