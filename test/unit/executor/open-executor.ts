/** Owns talks with real executor processes, for tests of what an executor says. */
import { systemClock } from '../../../src/clock.ts';
import { forkExecutor } from '../../../src/device/channel.ts';
import { openConversation } from '../../../src/device/conversation.ts';
import type { Conversation } from '../../../src/device/conversation.ts';
import { defaultDeviceLimits } from '../../../src/device/limits.ts';
import { entryPath } from './real-device.ts';

const open: { readonly conversation: Conversation; readonly gone: Promise<void> }[] = [];

/** A freshly started executor that sees this of the environment; `endExecutors` ends it. */
export function openExecutor(environment: Readonly<Record<string, string>> = {}): Conversation {
  let onGone = (): void => undefined;
  const gone = new Promise<void>((resolve) => (onGone = resolve));
  const conversation = openConversation({
    channel: forkExecutor(entryPath, { LANG: 'C', ...environment })('test'),
    clock: systemClock,
    limits: defaultDeviceLimits,
    onGone,
  });
  open.push({ conversation, gone });
  return conversation;
}

/** Asks every executor to end and waits until it has: for `afterAll`. */
export async function endExecutors(): Promise<void> {
  for (const { conversation } of open) conversation.stop();
  await Promise.all(open.splice(0).map(({ gone }) => gone));
}
