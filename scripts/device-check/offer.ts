/** Owns what a server offers while a provider is checked: everything, or what a slow device can bear. */
import type { ProviderName } from '../../src/executor/protocol.ts';
import type { ModelUse } from '../../src/model/role.ts';
import type { ProviderPlan } from './inventory.ts';
import { embedMethod, sparseMethod, type SpokenMethod } from './speed.ts';
import type { ValueKind } from './values.ts';

/** A model whose speed is measured, and the way to it. */
export interface Lane {
  readonly model: string;
  readonly spoken: SpokenMethod;
  readonly head: 'dense' | 'sparse';
}

/** What is served, and of that what is on the provider. */
export interface Offer {
  /** Flags of `serve` that say what runs where. */
  readonly flags: (provider: ProviderName) => readonly string[];
  readonly uses: readonly ModelUse[];
  readonly lanes: readonly Lane[];
  readonly kinds: ReadonlySet<ValueKind['name']>;
  readonly methods: ReadonlySet<string>;
  /** Why it is not everything. */
  readonly note: string;
  /** Longest time until the server is ready. @unit ms */
  readonly maxStartMs: number;
  /** Whether it says nothing of the program where the server is not ready in time. */
  readonly mayBeTooSlow: boolean;
}

const denseLane: Lane = { model: 'all-MiniLM-L6-v2', spoken: embedMethod, head: 'dense' };
const sparseLane: Lane = { model: 'splade-tiny', spoken: sparseMethod, head: 'sparse' };

const everything: Offer = {
  flags: (provider) => ['--device', provider],
  uses: ['embed', 'sparseEmbed', 'multiVector'],
  lanes: [denseLane, sparseLane],
  kinds: new Set(['dense', 'sparse', 'rows', 'rerank']),
  methods: new Set(['embed', 'embed/sparse', 'embed/multi', 'rerank']),
  note: '',
  maxStartMs: 150_000,
  mayBeTooSlow: false,
};

/** A software adapter takes minutes to prove and time the larger model, which therefore stays on the CPU. */
const smallest: Offer = {
  flags: (provider) => ['--device', 'cpu', '--sparse-device', provider],
  uses: ['sparseEmbed'],
  lanes: [sparseLane],
  kinds: new Set(['sparse']),
  methods: new Set(['embed/sparse']),
  note: ', with splade-tiny alone there, as the adapter is software',
  maxStartMs: 300_000,
  mayBeTooSlow: true,
};

/** What a server on that provider is asked to serve. */
export function offerFor({ provider, devices }: ProviderPlan): Offer {
  const isSoftware = devices.some(({ verdict }) => verdict.isUsable && verdict.isSoftware === true);
  return provider !== 'cpu' && isSoftware ? smallest : everything;
}
