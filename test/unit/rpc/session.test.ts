import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSessionStore, idKey, maxHttpSessions, Session } from '../../../src/rpc/session.ts';

const stdio = () => new Session({ isStateful: true, isInitialized: false });
const inFlight = (session: Session, rawId: string) => {
  const controller = new AbortController();
  return { signal: controller.signal, close: session.register(rawId, controller) };
};

describe('the key of an id', () => {
  it.each([
    ['1', '"1"'],
    ['""', '0'],
    ['9007199254740993', '9007199254740992'],
    ['"number:1"', '1'],
  ])('tells %s from %s', (a, b) => {
    expect(idKey(a)).not.toBe(idKey(b));
  });

  it('is the same for every way to write one text', () => {
    expect(idKey('"\\u0031"')).toBe(idKey('"1"'));
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        expect(idKey(JSON.stringify(a)) === idKey(JSON.stringify(b))).toBe(a === b);
      }),
    );
  });
});

describe('a cancel', () => {
  it('ends the call with that id, with the reason cancelled', () => {
    const session = stdio();
    const call = inFlight(session, '7');
    session.cancel('7');
    expect(call.signal.reason).toMatchObject({ errorName: 'cancelled' });
  });

  it('is exact about the type of the id', () => {
    const session = stdio();
    const call = inFlight(session, '1');
    session.cancel('"1"');
    expect(call.signal.aborted).toBe(false);
  });

  it.each(['7', '"x"'])('of an unknown id (%s) changes nothing', (rawId) => {
    const session = stdio();
    const call = inFlight(session, '1');
    session.cancel(rawId);
    expect(call.signal.aborted).toBe(false);
  });

  it('of a call that has ended changes nothing', () => {
    const session = stdio();
    const call = inFlight(session, '1');
    call.close();
    session.cancel('1');
    expect(call.signal.aborted).toBe(false);
  });

  it('reaches every call of an id used twice, and each ends on its own', () => {
    const session = stdio();
    const [first, second] = [inFlight(session, '1'), inFlight(session, '1')];
    first.close();
    session.cancel('1');
    expect([first.signal.aborted, second.signal.aborted]).toEqual([false, true]);
    second.close();
    const third = inFlight(session, '1');
    first.close();
    session.cancel('1');
    expect(third.signal.aborted).toBe(true);
  });

  it('of one session never reaches another', () => {
    const store = createSessionStore('stateless');
    const [a, b] = [store.ofHttp(undefined), store.ofHttp(undefined)];
    const call = inFlight(a, '1');
    b.cancel('1');
    expect(call.signal.aborted).toBe(false);
  });
});

describe('sessions over HTTP', () => {
  it('are fresh and initialized for callers without a token, or with an unknown one', () => {
    const store = createSessionStore('stateless');
    const [a, b] = [store.ofHttp(undefined), store.ofHttp('made-up')];
    expect(a).not.toBe(b);
    expect([a.isInitialized, a.isStateful, b.isInitialized, b.isStateful]).toEqual([true, false, true, false]);
  });

  it('are shared by those who send the same token, and stateful', () => {
    const store = createSessionStore('stateless');
    const token = store.ofHttp(undefined).createToken?.() ?? '';
    expect(token).toMatch(/^[\w-]{20,}$/);
    expect(store.ofHttp(token)).toBe(store.ofHttp(token));
    expect(store.ofHttp(token)).toMatchObject({ isStateful: true, isInitialized: true });
    const call = inFlight(store.ofHttp(token), '1');
    store.ofHttp(token).cancel('1');
    expect(call.signal.aborted).toBe(true);
  });

  it('are bounded in number: the one used least recently is forgotten', () => {
    const store = createSessionStore('stateless');
    const create = () => store.ofHttp(undefined).createToken?.() ?? '';
    const [kept, forgotten] = [create(), create()];
    const session = store.ofHttp(kept);
    for (let count = 2; count < maxHttpSessions + 1; count += 1) create();
    expect(store.ofHttp(kept)).toBe(session);
    expect(store.ofHttp(forgotten).isStateful).toBe(false);
  });

  it('are one where that is configured, with the rules of stdio, and shutdown resets it', () => {
    const store = createSessionStore('single');
    const session = store.ofHttp(undefined);
    expect(store.ofHttp('anything')).toBe(session);
    expect(session).toMatchObject({ isStateful: true, isInitialized: false, createToken: null });
    session.isInitialized = true;
    session.logLevel = 'debug';
    session.shutDown();
    expect(session).toMatchObject({ isInitialized: false, logLevel: null });
  });

  it('of everyone else survive a shutdown', () => {
    const store = createSessionStore('stateless');
    const session = store.ofHttp(undefined);
    session.shutDown();
    expect(session.isInitialized).toBe(true);
  });
});

describe('the session of a stdio process', () => {
  it('starts uninitialized', () => {
    expect(createSessionStore('stateless').ofStdio()).toMatchObject({ isStateful: true, isInitialized: false });
  });
});
