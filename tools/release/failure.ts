/** A release that cannot be made, with what to do about it. Shown without a stack. */
export class ReleaseFailure extends Error {
  override readonly name: string = "ReleaseFailure";
}
