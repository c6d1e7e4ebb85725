// Loaded before the agent: its wall clock is 20 s ahead, its timers are right.
const AHEAD_MS = 20_000;
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...given) {
    super(...(given.length === 0 ? [RealDate.now() + AHEAD_MS] : given));
  }

  static now() {
    return RealDate.now() + AHEAD_MS;
  }
};
