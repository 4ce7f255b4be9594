"""The first admin of a house that has no people yet: without a password, signed in by a link."""

from control.accounts.models import Role, User


def first_admin() -> User | None:
    """Makes it where nobody is; None where somebody is already."""
    if User.objects.exists():
        return None
    admin = User(username="admin", role=Role.ADMIN, is_staff=True, is_superuser=True)
    admin.set_unusable_password()
    admin.save()
    return admin
