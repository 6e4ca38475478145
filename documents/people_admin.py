"""People and groups as Django has them, but for what only a mouse can use or nobody can name: its two lists side by
side have no name for who cannot see them, and one colour for text and ground.
"""

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group

admin.site.unregister([get_user_model(), Group])


@admin.register(get_user_model())
class PeopleAdmin(UserAdmin):  # type: ignore[type-arg]  # takes none at run time
    filter_horizontal = ()
    # What the site writes down itself.
    readonly_fields = ("last_login", "date_joined")


@admin.register(Group)
class GroupsAdmin(GroupAdmin):
    filter_horizontal = ()
