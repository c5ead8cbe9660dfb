/** A document of which a test says whether it is in front, as the global one. */
export class FakePage extends EventTarget {
  visibilityState: DocumentVisibilityState;

  constructor(visibilityState: DocumentVisibilityState) {
    super();
    this.visibilityState = visibilityState;
    Object.assign(globalThis, { document: this, addEventListener: (): void => undefined });
  }

  turn(to: DocumentVisibilityState): void {
    this.visibilityState = to;
    this.dispatchEvent(new Event('visibilitychange'));
  }
}
